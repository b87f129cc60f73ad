"""Deferred messages over kills and power cuts, one after the other: each is there once, whatever happened."""

from __future__ import annotations

import random

import pytest

from penstock.log.topic_log import TopicLog
from tests.kit import MemoryFiles
from tests.unit.log.builders import new_log, open_log, read_all

from .history import History
from .world import SECOND, START


def run(seed: int, *, faults: bool = False) -> None:
    """Some lives of one topic, each ended by a crash in the middle or at its last operations; then time passes."""
    rng = random.Random(seed)
    history = History(seed, faults=faults)
    for life in range(rng.choice((1, 2, 2, 3))):
        history.live(rng.choice((3, 8, 25)) if life else 25)
        steps = [moment.step for moment in history.disk.moments()]
        step = rng.choice(steps[-25:] if rng.random() < 0.6 else steps)
        history.crash(step, cut=not faults and rng.random() < 0.4)
    if rng.random() < 0.5:
        history.live(6)
    history.check()


@pytest.mark.parametrize("start", range(0, 200, 20))
def test_what_was_promised_is_there_once_after_kills_and_power_cuts_in_a_row(start: int) -> None:
    for seed in range(start, start + 20):
        run(seed)


@pytest.mark.parametrize("start", range(0, 100, 20))
def test_flushes_and_writes_that_fail_between_kills_move_nothing_twice(start: int) -> None:
    for seed in range(start, start + 20):
        run(seed, faults=True)


@pytest.mark.slow
@pytest.mark.parametrize("faults", [False, True])
def test_many_histories(faults: bool) -> None:
    for seed in range(10_000, 14_000):
        run(seed, faults=faults)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_a_crash_after_each_operation_and_another_after_each_of_the_first_that_follow(seed: int) -> None:
    # given a life, and how many operations of the disk it took
    history = History(seed)
    history.live(20)
    steps = [moment.step for moment in history.disk.moments()]
    for step in steps:
        for cut in (False, True):
            for second in range(0, 12, 3):
                again = History(seed)
                again.live(20)
                # when it ends there, and the next process a little later
                again.crash(step, cut=False)
                again.live(8)
                first = next(again.disk.moments()).step
                again.crash(min(first + second, again.disk.step), cut=cut)
                # then nothing is lost and nothing is there twice
                again.check()


# --- what those found


def moved_log(files: MemoryFiles, count: int, *, max_bytes_per_file: int = 200) -> TopicLog:
    """A flushed log, and behind that `count` segments with a batch moved from one bucket, which has more."""
    log = new_log(files, max_bytes_per_file=max_bytes_per_file)
    for number in range(count):
        log.defer([b"%d" % number], START + (number + 1) * SECOND, START)
    log.defer([b"later"], START + 50 * SECOND, START)
    while work := log.work():
        work()
    for number in range(count):
        while work := log.timetable.prepare(START + (number + 1) * SECOND):
            work()
        assert log.move_due(START + (number + 1) * SECOND) == 1
        log.append([bytes(100)], START)
    return log


def all_moved(log: TopicLog, count: int) -> list[bytes]:
    """What of those the log holds once all are due."""
    now = START + 100 * SECOND
    while (look := log.next_due) is not None and look <= now:
        while work := log.timetable.prepare(now):
            work()
        log.move_due(now)
    names = {b"%d" % number for number in range(count)}
    return [record.body for record in read_all(log, log.earliest) if record.body in names]


def test_a_flush_of_some_segments_notes_what_was_moved_to_those() -> None:
    # given more segments than one flush takes, each with a moved message
    files = MemoryFiles()
    log = moved_log(files, 20)
    # when one flush is through and the process is killed
    work = log.work()
    assert work is not None
    work()
    assert log.flushed < log.end
    # then nothing is moved again
    assert len(all_moved(open_log(files), 20)) == 20


@pytest.mark.parametrize("works", [1, 2, 3, 4])
def test_a_segment_that_alone_says_what_was_moved_is_not_deleted_before_that_is_noted(works: int) -> None:
    # given moved messages that are finished, and a log that keeps nothing
    files = MemoryFiles()
    log = moved_log(files, 3)
    log.delete_below(log.end)
    # when some of what is to be done is done, and the process is killed
    for _ in range(works):
        if work := log.work():
            work()
    again = open_log(files)
    # then none of them comes again
    assert len(all_moved(again, 3)) + (again.earliest + 1) // 2 == 3
    # and when they are noted, the segments go
    again.delete_below(again.end)
    while work := again.work():
        work()
    assert again.earliest >= 4
