"""A topic's log and what waits for its time: moved when due, once, whatever the thread is at."""

from __future__ import annotations

import errno

import pytest

from penstock.errors import DiskFull, Refused
from penstock.log.disk import Disk
from penstock.log.timetable import timetable
from penstock.log.timetable.bucket import Limits
from penstock.log.topic_log import TopicLog
from penstock.log.work import Work
from penstock.protocol.batch import KEYED, MOVED, header
from tests.kit import FailingFiles, MemoryFiles
from tests.unit.log.builders import flush_log, new_log, open_log, read_all, texts

HOUR = 3600 * 10**9
START = 10**18


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dozen deferred messages are many."""
    monkeypatch.setattr(timetable, "Limits", lambda: Limits(load=1500, entries=24, held=4000))


def let_time_pass(log: TopicLog) -> None:
    now = START
    while (look := log.next_due) is not None:
        now = max(now, look) + 1
        while work := log.timetable.prepare(now):
            work()
        while log.move_due(now):
            pass


def splitting(log: TopicLog) -> Work:
    """The work that splits what was deferred for later."""
    look = log.next_due
    assert look is not None
    work = log.timetable.prepare(look)
    assert work is not None
    return work


def test_what_is_due_becomes_a_batch_of_the_log_with_the_time_of_its_publish() -> None:
    log = new_log()
    log.append([b"now"], START)
    log.defer([b"soon", b"too"], START + 5, START + 1)
    log.defer([b"later"], START + HOUR, START + 2)
    assert (log.deferred_count, log.end, log.move_due(START + 4)) == (3, 1, 0)
    assert (log.move_due(START + 5), log.deferred_count) == (2, 1)
    assert texts(read_all(log)) == [(0, b"now"), (1, b"soon"), (2, b"too")]
    assert [record.timestamp for record in read_all(log)] == [START, START + 1, START + 1]
    block = log.read(1)
    assert block is not None
    assert header(block.data).flags == KEYED | MOVED


def test_what_is_moved_and_waits_for_its_flush_is_still_counted() -> None:
    # given a log whose end is answered, and counted as a topic's depth, when it is flushed
    log = new_log(sync_every=1)
    log.defer([b"soon", b"too"], START, START)
    flush_log(log)
    # when they are due
    assert log.move_due(START) == 2
    # then they are among the deferred ones until they are among the others
    assert (log.deferred_count, log.committed) == (2, 0)
    flush_log(log)
    assert (log.deferred_count, log.committed) == (0, 2)


def test_what_has_no_room_in_the_log_waits_on() -> None:
    files = FailingFiles(MemoryFiles())
    log = new_log(files)
    log.defer([b"one"], START + 5, START)
    files.fail(errno.ENOSPC, on="write", path="*/00000000000000000000.log")
    with pytest.raises(DiskFull):
        log.move_due(START + 5)
    assert (log.deferred_count, log.end) == (1, 0)
    assert log.move_due(START + 5) == 1
    assert texts(read_all(open_log(files))) == [(0, b"one")]


def test_nothing_is_deferred_or_moved_while_the_log_refuses() -> None:
    files = FailingFiles(MemoryFiles())
    log = new_log(files)
    log.append([b"zero"], START)
    log.defer([b"one"], START + 5, START)
    files.fail(errno.EIO, on="flush", path="*/00000000000000000000.log")
    work = log.work()
    assert work is not None
    work()
    for refused in (lambda: log.defer([b"two"], START + 9, START), lambda: log.move_due(START + 5)):
        with pytest.raises(Refused):
            refused()
    flush_log(log)
    assert log.move_due(START + 5) == 1
    assert texts(read_all(log)) == [(0, b"zero"), (1, b"one")]


@pytest.mark.parametrize("flushed", [False, True])
def test_a_flush_that_begins_when_a_split_has_just_replaced_the_files_goes_on(flushed: bool) -> None:
    # given a bucket that a thread has split, which nobody took note of yet
    files = MemoryFiles()
    log = new_log(files)
    expected = [b"%03d" % number for number in range(100)]
    for body in expected:
        log.defer([body], START + HOUR, START)
    if flushed:
        flush_log(log)
    work = splitting(log)
    work.run()
    log.disk.close_all()
    # when the loop wants to flush
    flush_log(log)
    work.finish()
    flush_log(log)
    # then all is there, once
    assert log.deferred_count == 100
    let_time_pass(log)
    assert sorted(record.body for record in read_all(log)) == expected


def test_a_topic_that_is_deleted_amid_a_split_leaves_no_file_open() -> None:
    files = MemoryFiles()
    log = new_log(files)
    for _ in range(100):
        log.defer([b"body"], START + HOUR, START)
    flush_log(log)
    work = splitting(log)
    work.run()
    log.close_files()
    work.finish()
    assert files.opened() == []


@pytest.mark.parametrize("clean", [True, False])
def test_what_does_not_check_at_the_end_was_cut_short_by_a_kill_and_is_damage_behind_a_clean_stop(clean: bool) -> None:
    # given a deferred message whose bytes went bad at the very end of their file
    files = MemoryFiles()
    log = new_log(files)
    log.defer([b"first"], START + HOUR, START)
    log.defer([b"second"], START + HOUR, START)
    flush_log(log)
    log.disk.close_all()
    (path,) = [path for path in files.tree() if "/timetable/" in path]
    fd = files.open(path)
    files.truncate(fd, files.size(fd) - 1)
    # when it is opened again, by who knows how the process before ended
    disk = Disk(files)
    disk.clean = clean
    again = TopicLog.open(disk, log.directory, log.options, clean=clean)
    # then the other one is there, and the lost one is told of where no write can have been under way
    assert again.deferred_count == 1
    assert len(disk.damages) == clean
