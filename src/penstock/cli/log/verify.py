"""Check every CRC of a data path, a topic or a file, and say what is damaged. Works beside a running node.

Exits with 0 where all is well, with 1 where something is damaged, with 2 where there is nothing to verify.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from penstock.cli.log import showing
from penstock.errors import NoLogThere
from penstock.log.data_path import JOURNAL
from penstock.log.files import Files
from penstock.log.tools.store import TIMETABLE
from penstock.log.tools.verify import POWER_CUT, Report, StoreReport, verify

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from penstock.log.tools.verify import FileReport


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help="a data path, a topic's folder, or one file")
    parser.add_argument("--json", action="store_true", help="everything, as one JSON object")


def run(arguments: argparse.Namespace) -> int:
    try:
        report = verify(Files(), arguments.path)
    except NoLogThere as error:
        print(f"penstock: {error}", file=sys.stderr)
        return 2
    if arguments.json:
        print(json.dumps(_as_json(report), indent=2))
    else:
        for line in _lines(report):
            print(line)
    return 0 if report.clean else 1


def _lines(report: Report) -> Iterator[str]:
    by_title: dict[str, list[StoreReport]] = {}
    for store in report.stores:
        by_title.setdefault(_title(store), []).append(store)
    yield from showing.aligned([_row(title, stores) for title, stores in by_title.items()], right=(1, 2, 3))
    yield from (f"damage  {complaint}" for complaint in report.complaints)
    for store in report.stores:
        yield from _findings(store)
    records = sum(store.records for store in report.stores if store.store.kind != JOURNAL)
    size = showing.size(sum(store.bytes for store in report.stores))
    verdict = "all is well" if report.clean else "DAMAGED"
    yield f"{verdict}: {showing.records(records)}, {size}"


def _title(report: StoreReport) -> str:
    store = report.store
    return f"{store.topic} {store.kind}" if store.topic else store.only or store.kind


def _row(title: str, reports: list[StoreReport]) -> list[str]:
    """One line for a store; or for the buckets of a timetable, each of which counts from 0."""
    files = [file for report in reports for file in report.files if file.records]
    kind = reports[0].store.kind
    records = sum(report.records for report in reports)
    where = f"{files[0].first} to {files[-1].next - 1}" if files else ""
    if kind == TIMETABLE:
        where = f"{records - sum(report.moved for report in reports):,} waiting"
    begins = min((file.first_time for file in files), default=0)
    ends = max((file.last_time for file in files), default=0)
    times = f"{showing.moment(begins)} to {showing.moment(ends)}" if files else "empty"
    return [
        title,
        showing.counted(sum(len(report.files) for report in reports), "file"),
        showing.records(records, kind),
        showing.size(sum(report.bytes for report in reports)),
        where,
        times,
    ]


def _findings(report: StoreReport) -> Iterator[str]:
    yield from (f"damage  {complaint}" for complaint in report.complaints)
    for file in report.files:
        yield from (f"damage  {file.path}: {showing.gap(gap, missing=file.missing)}" for gap in file.gaps)
        if file.index in ("damaged", "wrong"):
            yield f"damage  {file.path}: its index is {file.index}; `penstock log repair` makes it again"
        if file.unreadable:
            yield f"damage  {file.path}: there are bytes that the device does not give"
        if file.unfinished:
            yield f"note    {file.path}: the last {file.unfinished} bytes are a batch that is not finished"
    for hole in report.holes:
        why = "a power cut" if hole.why == POWER_CUT else "damage: a file is missing"
        yield f"hole    {_title(report)}: offsets {hole.first} to {hole.next - 1}: {why}"
    yield from (f"note    {note}" for note in report.notes)


def _as_json(report: Report) -> dict[str, object]:
    return {
        "path": report.path,
        "clean": report.clean,
        "complaints": report.complaints,
        "stores": [_store_as_json(store) for store in report.stores],
    }


def _store_as_json(report: StoreReport) -> dict[str, object]:
    return {
        "kind": report.store.kind,
        "topic": report.store.topic,
        "directory": report.store.directory,
        "clean": report.clean,
        "records": report.records,
        "moved": report.moved,
        "bytes": report.bytes,
        "holes": [hole._asdict() for hole in report.holes],
        "complaints": report.complaints,
        "notes": report.notes,
        "files": [_file_as_json(file) for file in report.files],
    }


def _file_as_json(report: FileReport) -> dict[str, object]:
    return {
        "path": report.path,
        "first": report.first,
        "next": report.next,
        "records": report.records,
        "bytes": report.bytes,
        "first_time": showing.moment(report.first_time) if report.records else None,
        "last_time": showing.moment(report.last_time) if report.records else None,
        "damage": [gap._asdict() for gap in report.gaps],
        "missing": report.missing,
        "unreadable": report.unreadable,
        "unfinished": report.unfinished,
        "index": report.index,
    }
