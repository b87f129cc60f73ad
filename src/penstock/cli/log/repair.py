"""Make indexes, topic.json and node.json again from what the log says. Removes no message; refuses beside a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.log.files import Files
from penstock.log.tools.repair import repair

if TYPE_CHECKING:
    import argparse

_WORDS: Final = {"repair": "repaired", "remove": "removed", "leave": "left"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help="a data path, a topic's folder, or one file")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")


def run(arguments: argparse.Namespace) -> int:
    count = 0
    for deed in repair(Files(), arguments.path, dry_run=arguments.dry_run):
        print(f"{f'would {deed.verb}' if arguments.dry_run else _WORDS[deed.verb]} {deed.path}: {deed.why}")
        count += deed.verb != "leave"
    if not count:
        print("nothing to repair")
    return 0
