"""Make a data folder from which an original nsqd starts, of the data path of a node that is stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.cli.progress import progress
from penstock.cli.summary import show
from penstock.log.transfer import export_folder

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="a folder that is empty, or does not exist")
    parser.add_argument("--data-path", metavar="PATH", required=True, help="the data path of a node that is stopped")
    parser.add_argument("--json", action="store_true", help="the summary as one JSON object")


def run(arguments: argparse.Namespace) -> int:
    with progress("messages") as tell:
        summary = export_folder(arguments.data_path, arguments.folder, progress=tell)
    show(summary, f"in {arguments.folder}, flushed", as_json=arguments.json)
    return 0
