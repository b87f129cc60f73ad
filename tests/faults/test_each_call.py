"""Each call of the file system in turn fails, once: what was refused works when done again, and all is there."""

from __future__ import annotations

import errno
from collections.abc import Callable
from itertools import count
from typing import TypeVar

import pytest

from penstock.errors import PenstockError
from penstock.log.data_path import JOURNAL, DataPath
from penstock.log.disk import Disk
from penstock.log.entries import ReaderMoved
from penstock.log.journal import Journal
from penstock.log.topic_log import LogOptions, TopicLog
from tests.kit import FailingFiles, MemoryFiles
from tests.unit.log.builders import read_all

from .history import PATH

T = TypeVar("T")
SECOND = 10**9
OPTIONS = LogOptions(max_bytes_per_file=300)


def again(do: Callable[[], T]) -> T:
    """Do it, and once more where that was refused in the log's own way."""
    for _ in range(2):
        try:
            return do()
        except PenstockError:
            pass
    return do()


class Script:
    """Everything a data path does, a little of each; what was answered."""

    def __init__(self, files: FailingFiles) -> None:
        self.files = files
        self.bodies: list[bytes] = []
        self.noted = 0

    def run(self) -> None:
        data = again(self.open)
        log = again(lambda: data.create("t"))
        journal = again(lambda: Journal(data.disk, f"{PATH}/{JOURNAL}"))
        for number in range(4):
            self.append(log, number)
            again(lambda number=number: log.defer([b"deferred %d" % number], number * SECOND, 0))  # type: ignore[misc]
            self.bodies.append(b"deferred %d" % number)
            again(lambda number=number: journal.append([ReaderMoved(1, "r", number, 0, False)], 0))  # type: ignore[misc]
            self.noted = number
            self.work_off(log, journal)
            self.append(log, number + 10)
            while again(lambda number=number: log.move_due(number * SECOND)):  # type: ignore[misc]
                pass
        again(lambda: log.hold([1, 4], 0))
        log.delete_below(6)
        self.work_off(log, journal)
        self.append(log, 20)
        try:
            data.close()
        except PenstockError:
            data.disk.close_all()

    def open(self) -> DataPath:
        return DataPath(PATH, disk=Disk(self.files, limit=6), options=OPTIONS, boot="1")

    def append(self, log: TopicLog, number: int) -> None:
        bodies = [b"%d %d" % (number, each) + b"x" * 60 for each in range(3)]
        again(lambda: log.append(bodies, 0))
        self.bodies += bodies

    def work_off(self, log: TopicLog, journal: Journal) -> None:
        for work in (log.work, journal.flush_work):
            for _ in range(20):
                if (step := again(work)) is None:
                    break
                step.run()
                again(step.finish)


def check(script: Script) -> None:
    """What the next process finds: all but what was deleted, and of that what was held."""
    data = script.open()
    (log,) = [log for log in data.logs if log.end or log.deferred_count]
    read = read_all(log)
    found = [record.body for record in read] + [entry.body for entry in log.timetable.entries(100)]
    assert log.earliest == 6
    assert [record.offset for record in read] == [1, 4, *range(6, log.end)]
    assert len({*found}) == len(found) == len(script.bodies) - 4
    assert {*found} < {*script.bodies}
    journal = Journal(data.disk, f"{PATH}/{JOURNAL}")
    assert max(entry.offset for entry in journal.replay() if isinstance(entry, ReaderMoved)) == script.noted
    assert data.disk.damages == []


def with_each_call_failing(error: int, first: int, step: int) -> int:
    """How many calls were made to fail, each in a world of its own."""
    for number in count(first, step):
        beneath = MemoryFiles()
        beneath.make_directory(PATH)
        script = Script(FailingFiles(beneath))
        fault = script.files.fail(error, skip=number)
        script.run()
        if not fault.met:
            return number // step
        try:
            check(script)
        except Exception as problem:
            problem.add_note(f"call {number} failed: {script.files.calls[number]}")
            raise
    raise AssertionError


ERRORS = [errno.ENOSPC, errno.EIO, errno.EMFILE, errno.EDQUOT]


@pytest.mark.parametrize(("first", "error"), [*enumerate(ERRORS)], ids=str)
def test_a_call_that_fails_once_costs_nothing(first: int, error: int) -> None:
    assert with_each_call_failing(error, first * 3, 12) > 15


@pytest.mark.slow
@pytest.mark.parametrize("error", ERRORS)
def test_any_call_that_fails_once_costs_nothing(error: int) -> None:
    assert with_each_call_failing(error, 0, 1) > 200
