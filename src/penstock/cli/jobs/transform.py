"""From topics to a topic or to files, by SQL or by a function of your own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.cli.jobs import arguments as args
from penstock.cli.jobs.running import run_jobs
from penstock.spark.jobs.options import Transform

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    args.add_table(parser, Transform)
    args.add_job_arguments(parser)
    args.add_session_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    from penstock.spark.jobs.transform import start

    return run_jobs("transform", Transform, start, arguments)
