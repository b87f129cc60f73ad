"""Keep the messages of topics in files, Parquet or JSON lines: each once, by topic, date and hour (UTC)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.cli.jobs import arguments as args
from penstock.cli.jobs.running import run_jobs
from penstock.spark.jobs.options import Archive

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    args.add_table(parser, Archive)
    args.add_job_arguments(parser)
    args.add_session_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    from penstock.spark.jobs.archive import start

    return run_jobs("archive", Archive, start, arguments)
