"""Copy a data path into an empty folder, of a running node or of one that stands, and check the copy.

Exits with 1 where the data path is damaged; then the copy holds the same damage, and all that is good.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from penstock.cli.log import showing
from penstock.log.data_path import JOURNAL
from penstock.log.files import Files
from penstock.log.tools.backup import backup
from penstock.log.tools.store import HELD, LOG, TIMETABLE

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help="the data path")
    parser.add_argument("target", metavar="TARGET", help="a folder that is empty, or does not exist")


def run(arguments: argparse.Namespace) -> int:
    copied = backup(Files(), arguments.path, arguments.target)
    for damage in copied.damage:
        print(f"penstock log backup: {damage}", file=sys.stderr)
    print(showing.counted(copied.topics, "topic"))
    for kind in (LOG, HELD, TIMETABLE, JOURNAL):
        if files := copied.segments[kind]:
            print(f"{kind}: {showing.counted(files, 'file')}, {showing.records(copied.records[kind], kind)}")
    print(f"{showing.size(copied.bytes)} copied, checked and flushed")
    return 1 if copied.damage else 0
