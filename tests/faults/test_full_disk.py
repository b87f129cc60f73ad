"""A real file system without room: what is refused is told and leaves nothing behind, and it heals by itself."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import DiskFull, LogError
from penstock.log.data_path import JOURNAL, DataPath
from penstock.log.entries import ReaderMoved
from penstock.log.files import Files
from penstock.log.journal import Journal
from penstock.log.topic_log import LogOptions, TopicLog
from tests.kit import small_disk
from tests.unit.log.builders import read_all

from .history import work_off

SIZE = 1 << 20
OPTIONS = LogOptions(max_bytes_per_file=100_000)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path, SIZE) as place:
        yield place


def body(offset: int) -> bytes:
    return b"%d " % offset + b"x" * (offset * 7919 % 3000)


def fill(log: TopicLog) -> None:
    """Append batches of all sizes until not even the smallest goes in."""
    for count in (30, 3, 1):
        with contextlib.suppress(DiskFull):
            while True:
                log.append([body(log.end + each) for each in range(count)], 0)
    with contextlib.suppress(DiskFull):
        while True:
            log.append([b""] * 2, 0)


def bodies(log: TopicLog) -> list[bytes]:
    return [record.body for record in read_all(log)]


def abandoned(data: DataPath) -> DataPath:
    """The same data path as the next process finds it after a kill."""
    data.abandon()
    return DataPath(data.path, options=OPTIONS)


def test_a_full_disk_refuses_what_has_no_room_and_keeps_all_that_had(place: Path) -> None:
    # given a log that filled its disk
    data = DataPath(str(place), options=OPTIONS)
    log = data.create("t")
    work_off(log)
    fill(log)
    end, before = log.end, bodies(log)
    assert end > 300
    # when more is asked for, in many sizes
    for size in (0, 1, 100, 5000, 200_000):
        for many in (1, 7):
            with pytest.raises(DiskFull):
                log.append([bytes(size)] * many, 0)
    with pytest.raises(DiskFull):
        log.defer([bytes(5000)], 1, 0)
    # then it is refused, nothing of it is there, and all that was answered is, also after a kill
    assert (log.end, bodies(log)) == (end, before)
    data = abandoned(data)
    (log,) = data.logs
    assert (log.end, bodies(log)) == (end, before)
    assert not log.deferred_count
    assert data.disk.damages == []
    data.abandon()


def test_what_nobody_wants_makes_room_on_a_disk_without_any(place: Path) -> None:
    # given a disk on which not a byte is free
    data = DataPath(str(place), options=OPTIONS)
    log = data.create("t")
    work_off(log)
    fill(log)
    (place / "filler").write_bytes(bytes(Files().free(str(place))))
    assert Files().free(str(place)) == 0
    # when the first half may go
    log.delete_below(log.end // 2)
    for _ in range(6):  # it may take a few turns, and none of them is in vain
        if work := log.work():
            work()
    # then it goes, what is behind it is there, and appends work again
    assert 0 < log.earliest <= log.end // 2
    assert log.append([b"more"], 0) == log.end - 1
    assert [record.offset for record in read_all(log)] == list(range(log.earliest, log.end))
    data = abandoned(data)
    assert bodies(data.logs[0])[-1] == b"more"
    assert data.logs[0].earliest == log.earliest
    data.abandon()


def test_it_heals_by_itself_when_somebody_else_makes_room(place: Path) -> None:
    # given a disk that another program fills, up to some byte of what comes next
    data = DataPath(str(place), options=OPTIONS)
    log = data.create("t")
    journal = Journal(data.disk, f"{place}/{JOURNAL}")
    work_off(log)
    expected = []
    refused = 0
    for round_, pages in enumerate(itertools.islice(itertools.cycle(range(4)), 12)):
        filler = place / "filler"
        filler.write_bytes(bytes(Files().free(str(place)) - pages * os.sysconf("SC_PAGE_SIZE")))
        for size in (3000, 9000, 1):
            new = [bytes(size), b"%d" % round_]
            try:
                log.append(new, 0)
                expected += new
                log.defer(new, 1, 0)
                journal.append([ReaderMoved(1, "r", round_, 0, False)], 0)
            except DiskFull:
                refused += 1
        with contextlib.suppress(LogError):
            if work := log.work():
                work()
        # when there is room again
        filler.unlink()
        # then everything works at once
        log.append([b"again"], 0)
        log.defer([b"later"], 1 << 62, 0)
        journal.append([ReaderMoved(1, "r", round_, 0, False)], 0)
        expected.append(b"again")
        work_off(log)
        assert log.refused is None
        assert bodies(log) == expected
    assert refused > 12
    assert sum(entry.body == b"later" for entry in log.timetable.entries(10_000)) == 12
    data = abandoned(data)
    assert bodies(data.logs[0]) == expected
    data.abandon()


def test_a_node_stops_and_starts_on_a_full_disk(place: Path) -> None:
    data = DataPath(str(place), options=OPTIONS)
    log = data.create("t")
    (place / "filler").write_bytes(bytes(100_000))
    fill(log)
    before = bodies(log)
    # a stop may not be able to say that it was one in order: then the next start looks at everything
    with contextlib.suppress(LogError):
        data.close()
    # but a start finds everything, after a stop and after a kill
    for _ in range(2):
        data = DataPath(str(place), options=OPTIONS)
        assert bodies(data.logs[0]) == before
        data.abandon()
    (place / "filler").unlink()
    data = DataPath(str(place), options=OPTIONS)
    assert bodies(data.logs[0]) == before
    assert data.disk.damages == []
    data.close()
