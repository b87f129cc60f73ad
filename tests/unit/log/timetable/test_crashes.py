"""Deferred messages over kills and power cuts, one after the other: each is there once, whatever happened."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from penstock.log.topic_log import TopicLog
from penstock.protocol.batch import KEYED
from tests.kit import MemoryFiles, PowerCuts
from tests.unit.log.builders import TOPICS, new_log, open_log, read_all

from .history import History, small_limits
from .world import SECOND, START

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    with small_limits():
        yield


def run(seed: int, *, faults: bool = False) -> None:
    """Some lives of one topic, each ended by a crash in the middle or at its last operations; then time passes."""
    rng = random.Random(seed)
    history = History(seed, faults=faults)
    for life in range(rng.choice((1, 2, 2, 3))):
        history.live(rng.choice((3, 8, 25)) if life else 25)
        steps = [moment.step for moment in history.disk.moments()]
        step = rng.choice(steps[-25:] if rng.random() < 0.6 else steps)
        history = history.crashed(step, cut=not faults and rng.random() < 0.4)
    if rng.random() < 0.5:
        history.live(6)
    history.check()


@pytest.mark.parametrize("start", range(0, 100, 20))
def test_what_was_promised_is_there_once_after_kills_and_power_cuts_in_a_row(start: int) -> None:
    for seed in range(start, start + 20):
        run(seed)


@pytest.mark.parametrize("start", range(0, 60, 20))
def test_flushes_and_writes_that_fail_between_kills_move_nothing_twice(start: int) -> None:
    for seed in range(start, start + 20):
        run(seed, faults=True)


@pytest.mark.slow
@pytest.mark.parametrize("faults", [False, True])
def test_many_histories(faults: bool) -> None:
    for seed in range(10_000, 14_000):
        run(seed, faults=faults)


def a_few_moved(history: History) -> None:
    """One bucket of which some are moved and noted, then the rest; another one that waits."""
    history.defer([b"1", b"2", b"3"], SECOND)
    history.defer([b"4"], 2 * SECOND)
    history.defer([b"5"], 100 * SECOND)
    for _ in range(2):
        history.now += SECOND
        history.move()
        history.flush()


def all_moved_and_rolled(history: History) -> None:
    """All that was deferred is moved, and the log's segments are closed behind it."""
    history.defer([b"1", b"2", b"3"], SECOND)
    history.flush()
    history.now += SECOND
    history.move()
    history.publish(bytes(4000))
    history.flush()


def many_split(history: History) -> None:
    """A bucket too large, dealt out to others, of which some are moved."""
    for number in range(12):
        history.defer([b"%d " % number + bytes(200)], (1 + number) * SECOND)
    history.flush()
    history.now += 6 * SECOND
    for _ in range(4):
        history.move()
        history.flush()


def many_segments(history: History) -> None:
    """Moved to more segments than one flush takes."""
    for number in range(6):
        history.defer([b"%d " % number + bytes(500)], SECOND)
        history.defer([b"%d later" % number], 2 * SECOND)
    history.flush()
    for _ in range(12):
        history.now += SECOND // 3
        history.move()
    history.flush()


def crash_twice(life: Callable[[History], None], *, moves: bool, stride: int = 1) -> None:
    """Killed after each (stride-th) operation of the life, and again ended after each of what follows."""
    history = History(1)
    life(history)
    for first in list(history.disk.moments())[::stride]:
        # when the next process does a little
        again = history.crashed(first.step, cut=False)
        if moves:
            again.move()
        again.flush()
        # then all is there once, wherever it ends
        for second in list(again.disk.moments())[:: 1 + stride // 2]:
            again.crashed(second.step, cut=False).check()
            for _ in range(3 if stride == 1 else 1):
                again.crashed(second.step, cut=True).check()


def one_split(history: History) -> None:
    """A bucket too large, dealt out to others before any of it is due."""
    for number in range(4):
        history.defer([b"%d " % number + bytes(500)], (70 + number) * SECOND)
    history.flush()
    history.now += 69 * SECOND + SECOND // 2
    work = history.log.timetable.prepare(history.now)
    assert work is not None
    work()
    history.flush()


def test_power_goes_anywhere_in_a_split() -> None:
    history = History(1)
    one_split(history)
    for moment in history.disk.moments():
        for _ in range(6):
            history.crashed(moment.step, cut=True).check()


@pytest.mark.parametrize("moves", [False, True])
def test_a_kill_and_a_crash_anywhere_in_what_follows(moves: bool) -> None:
    crash_twice(all_moved_and_rolled, moves=moves, stride=2)
    crash_twice(a_few_moved, moves=moves, stride=5)
    crash_twice(many_segments, moves=moves, stride=23)
    crash_twice(many_split, moves=moves, stride=97)


@pytest.mark.slow
@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("life", [a_few_moved, all_moved_and_rolled, many_segments, many_split])
def test_a_kill_everywhere_and_a_crash_everywhere_in_what_follows(life: Callable[[History], None], moves: bool) -> None:
    crash_twice(life, moves=moves)


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


def test_recovery_keeps_the_keys_of_producers_and_not_those_of_moves() -> None:
    files = MemoryFiles()
    log = moved_log(files, 3)
    log.append([b"x"], START, flags=KEYED, key=b"producer")
    assert [each.key for each in open_log(files).keyed] == [b"producer"]


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


def test_a_flush_of_some_segments_notes_nothing_of_the_others() -> None:
    # given a log of which some segments with moved messages are flushed, and others are not
    start = MemoryFiles()
    start.make_directory(TOPICS)
    disk = PowerCuts(start)
    log = moved_log(disk, 6)
    work = log.work()
    assert work is not None
    work()
    assert log.flushed < log.end
    # when power goes
    for state in disk.now.cuts(random.Random(1), 60):
        again = open_log(state, after_power_cut=True)
        # then what it took of the log is moved again
        assert sorted(all_moved(again, 6)) == [b"0", b"1", b"2", b"3", b"4", b"5"]


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
