"""Make a data path from the data folder of an original nsqd, which has to be stopped and is not changed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from penstock.cli.progress import progress
from penstock.cli.summary import show
from penstock.log.transfer import import_folder

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="what nsqd has as its --data-path")
    parser.add_argument("--data-path", metavar="PATH", required=True, help="a folder that is empty, or does not exist")
    parser.add_argument("--json", action="store_true", help="the summary as one JSON object")


def run(arguments: argparse.Namespace) -> int:
    with progress("messages") as tell:
        summary = import_folder(arguments.folder, arguments.data_path, now=time.time_ns(), progress=tell)
    show(summary, f"in {arguments.data_path}, flushed, read back and counted", as_json=arguments.json)
    return 0
