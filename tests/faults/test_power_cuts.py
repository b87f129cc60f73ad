"""Power cuts and kills at every moment of random histories: what is found keeps every promise, and goes on."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from penstock.log.data_path import DataPath
from penstock.log.disk import Disk
from penstock.log.journal import Journal
from penstock.log.topic_log import LogOptions, TopicLog
from tests.kit import MemoryFiles

from .history import PATH, History, small_world, work_off
from .known import Book, Known
from .rules import JOURNAL, check_deferred, check_journal, check_topics


@contextmanager
def told(history: History, what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        error.add_note(what)
        error.add_note("\n".join(history.told[-60:]))
        raise


def recovered(files: MemoryFiles, known: dict[str, Known], book: Book, *, cut: bool, boot: int) -> None:
    """Open the data path in these files, check what is there, and go on."""
    data = DataPath(PATH, disk=Disk(files), options=LogOptions(800), boot=f"{boot}{'+' if cut else ''}")
    check_topics(data.logs, known, book, cut=cut)
    check_journal(Journal(data.disk, f"{PATH}/{JOURNAL}"), known.get(JOURNAL, Known()), cut=cut)
    for log in data.logs:
        topic = known.get(log.birth.folder, Known())
        work_off(log)
        check_deferred(log, topic, book, cut=cut)
        first = log.append([b"after"], 2 * 10**18)
        assert first >= topic.end, f"{first} is given out twice"
        block = log.read(first)
        assert block is not None
        assert block.first == first
        let_time_pass(log)
        assert not log.deferred_count
        check_deferred(log, topic, book, cut=cut)
    data.abandon()


def let_time_pass(log: TopicLog) -> None:
    """All that waits is moved into the log, and flushed."""
    now = 0
    while (look := log.next_due) is not None:
        now = max(now, look) + 1
        while work := log.timetable.prepare(now):
            work()
        while log.move_due(now):
            pass
    work_off(log)


def relive(seed: int, *, cuts: float, kills: float) -> None:
    """A history of several processes, cut and killed at these shares of the moments of each."""
    rng, drawn = random.Random(seed), random.Random(seed)
    with small_world(seed):
        history = History(seed)
        for _ in range(3):
            with told(history, f"seed {seed}"):
                history.live(rng.randrange(10, 40))
            moments = list(history.moments())
            for moment, known in history.moments():
                if drawn.random() < cuts:
                    state = next(moment.cuts(drawn, 1))
                    with told(history, f"seed {seed}, {state.origin}"):
                        recovered(state, known, history.book, cut=True, boot=history.boot)
                if drawn.random() < kills:
                    with told(history, f"seed {seed}, killed after operation {moment.step}"):
                        recovered(moment.kill(), known, history.book, cut=False, boot=history.boot)
            moment, _ = rng.choice(moments[-20:])
            left = next(moment.cuts(rng, 1)) if rng.random() < 0.6 else None
            with told(history, f"seed {seed}, going on"):
                history.go_on(moment, left)


@pytest.mark.parametrize("seed", range(8))
def test_every_state_that_a_cut_or_a_kill_could_leave_keeps_what_was_promised(seed: int) -> None:
    relive(seed, cuts=0.2, kills=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8, 1008))
def test_a_thousand_histories_keep_what_was_promised(seed: int) -> None:
    relive(seed, cuts=1, kills=0.3)
