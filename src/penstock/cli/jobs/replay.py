"""Publish an archive again: filtered, as fast as it goes, at a rate, or as it once came. Each message once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.cli.jobs import arguments as args
from penstock.cli.jobs.running import run_jobs
from penstock.spark.jobs.options import Replay

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    args.add_table(parser, Replay)
    args.add_job_arguments(parser)
    args.add_session_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    from penstock.spark.jobs.replay import start

    return run_jobs("replay", Replay, start, arguments)
