"""Checks every CRC, and that the rest agrees with what the batches say; changes nothing, and needs no lock.

A node may be running: what it is writing, has just deleted, or begins meanwhile is no damage.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from penstock.errors import CorruptLog
from penstock.log import birth, damage
from penstock.log.birth import JUMP
from penstock.log.chain import Hole
from penstock.log.data_path import JOURNAL
from penstock.log.index import Gap
from penstock.log.tools import small_files
from penstock.log.tools.deferred import moved
from penstock.log.tools.indexes import SUFFIX as INDEX
from penstock.log.tools.indexes import IndexCheck
from penstock.log.tools.looking import Run, names, stretches
from penstock.log.tools.store import LOG, TIMETABLE, first_of, left_over
from penstock.log.tools.stores import find, is_data_path
from penstock.protocol.batch import header, record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.log.files import Files
    from penstock.log.tools.looking import End
    from penstock.log.tools.store import SegmentFile, Store

MISSING: Final = "missing"
POWER_CUT: Final = "power cut"


@dataclass
class FileReport:
    """What one segment holds."""

    path: str
    first: int
    next: int = 0
    records: int = 0
    bytes: int = 0  # up to the end of the last good batch
    first_time: int = 0
    last_time: int = 0
    gaps: list[Gap] = field(default_factory=list)  # damage; also at the end, where more has been than there is now
    unfinished: int = 0  # bytes of a batch that is being written, or was when a node was killed: no damage
    missing: bool = False  # only its index is there, and says how far it went
    unreadable: bool = False  # there were bytes that the device did not give
    index: str = ""  # "good", "missing", "damaged", "wrong"; empty for files that have none
    base: int | None = None  # what the first record says of the ids

    @property
    def clean(self) -> bool:
        return not self.gaps and self.index in ("", "good", "missing")


@dataclass
class StoreReport:
    """What the segments of one folder hold together."""

    store: Store
    files: list[FileReport] = field(default_factory=list)
    holes: list[Hole] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)  # damage that is in no segment
    notes: list[str] = field(default_factory=list)
    moved: int = 0  # records of a timetable that stand in the log by now

    @property
    def records(self) -> int:
        return sum(file.records for file in self.files)

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @property
    def clean(self) -> bool:
        whole = all(hole.why == POWER_CUT for hole in self.holes)
        return whole and not self.complaints and all(file.clean for file in self.files)


@dataclass
class Report:
    """What is at a path."""

    path: str
    stores: list[StoreReport] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not self.complaints and all(store.clean for store in self.stores)


def verify(files: Files, path: str) -> Report:
    """Everything at `path`, checked."""
    report = Report(path)
    if is_data_path(files, path):
        try:
            small_files.read_node(files, path)
        except CorruptLog as error:
            report.complaints.append(str(error))
    report.stores = [verify_store(files, store) for store in find(files, path)]
    return report


def verify_store(files: Files, store: Store) -> StoreReport:
    report = StoreReport(store)
    for segment in store.segments(files):
        try:
            report.files.append(verify_file(files, store, segment))
        except FileNotFoundError:  # deleted since it was listed
            continue
    if store.kind == TIMETABLE:
        numbers, damaged = moved(files, store)
        report.moved = len(numbers)
        report.complaints += [f"{path}: bytes {gap.position} to {gap.stop} are bad" for path, gap in damaged]
    if store.kind == LOG and not store.only:
        report.files += _lost_end(files, store, report.files)
    expected = report.files[0].first if report.files else 0
    if store.kind == LOG and store.topic and not store.only:
        expected = _check_birth(files, report, expected)
    report.holes = list(_holes(report.files, expected))
    _look_around(files, report)
    return report


def _lost_end(files: Files, store: Store, found: list[FileReport]) -> Iterator[FileReport]:
    """Files behind the others that are lost, and their indexes are not: an index goes before its file does."""
    end = max((file.next for file in found), default=0)
    for name in names(files, store.directory)[0]:
        path = f"{store.directory}/{name.removesuffix(INDEX)}.log"
        first = first_of(os.path.basename(path))
        if name.endswith(INDEX) and first is not None and first >= end and not files.exists(path):
            was = max(first, IndexCheck(files, path, first, store.seed).reach)
            yield FileReport(path, first, first, gaps=[Gap(first, was, 0, 0)], missing=True)


def verify_file(files: Files, store: Store, segment: SegmentFile) -> FileReport:
    """FileNotFoundError where it has gone."""
    check = None
    if store.kind != JOURNAL and segment.first is not None:
        check = IndexCheck(files, segment.path, segment.first, store.seed)
    report = FileReport(segment.path, segment.first or 0)
    for stretch in stretches(files, segment.path, segment.first, store.seed):
        if isinstance(stretch, Run):
            if not report.bytes:
                _begin(report, stretch, segment, store)
            report.records += stretch.next - stretch.first
            report.bytes = stretch.stop
            report.last_time = stretch.time
            if check is not None:
                check.run(stretch)
        elif isinstance(stretch, Gap):
            report.gaps.append(stretch)
        else:
            _end(report, stretch, check, small=store.kind == TIMETABLE)
    if segment.bound is not None:
        _cut(report, segment.bound)
    return report


def _begin(report: FileReport, run: Run, segment: SegmentFile, store: Store) -> None:
    head = header(run.data)
    report.first_time = head.appended
    if segment.first is None:
        report.first = run.first
    if store.kind == LOG and store.topic:
        report.base = int(record(run.data, head.payload, head.first).id, 16) - head.first


def _end(report: FileReport, tail: End, check: IndexCheck | None, *, small: bool) -> None:
    """How it ends; of `small` files not all have an index."""
    report.next = tail.offset
    report.unreadable = tail.unreadable
    was = tail.offset
    if check is not None:
        was = check.end(tail, report.gaps)
        report.index = "" if check.missing and small else check.state
    if not tail.torn or was > tail.offset:
        report.gaps.append(Gap(tail.offset, was, tail.position, tail.size))
    else:
        report.unfinished = tail.size - tail.position


def _cut(report: FileReport, bound: int) -> None:
    """The next file holds what begins there: it was copied to it, and is not read here."""
    report.gaps = [gap for gap in report.gaps if gap.first < bound]
    if report.next > bound:
        report.records = max(0, report.records - (report.next - bound))
        report.next = bound


def _check_birth(files: Files, report: StoreReport, expected: int) -> int:
    """Look at topic.json last: what a running node had reserved and deleted by then, it says; the earliest offset."""
    directory = report.store.directory
    try:
        born = birth.read(files, directory)
    except CorruptLog as error:
        report.complaints.append(str(error))
        return expected
    end = max((file.next for file in report.files), default=0)
    if end > born.reserved:
        report.complaints.append(f"{directory}/{birth.NAME} reserves offsets to {born.reserved}, the log ends at {end}")
    for file in report.files:
        if file.base is not None and file.base != born.base:
            report.complaints.append(f"{file.path} holds ids of another topic than {directory}/{birth.NAME} says")
    return born.earliest


def _holes(reports: list[FileReport], expected: int) -> Iterator[Hole]:
    for report in reports:
        if report.first > expected:
            wide = report.first - expected >= JUMP
            yield Hole(expected, report.first, POWER_CUT if wide else MISSING)
        expected = max(expected, report.next)


def _look_around(files: Files, report: StoreReport) -> None:
    """What else is in the folder that a person should know of."""
    store = report.store
    if store.only:
        return
    paths = left_over(files, store.directory, store.prefix)
    report.notes += [f"{path} was being made when a node was killed" for path in paths]
    if store.kind != TIMETABLE and damage.FOLDER in names(files, store.directory)[1]:
        copies = len(names(files, f"{store.directory}/{damage.FOLDER}")[0])
        report.notes.append(f"{store.directory}/{damage.FOLDER} holds {copies} copies of damage met before")
