"""Calls that fail at any moment of random histories: errors are ours, what was answered stays, and it works again."""

from __future__ import annotations

import random

import pytest

from .history import History, small_world, work_off
from .rules import check_deferred, check_topics
from .test_power_cuts import recovered, told


def go_through(seed: int, *, cuts: float) -> None:
    """A history of faults; in the middle and at its end all is there, also for whoever comes after a kill or a cut."""
    rng = random.Random(seed)
    with small_world(seed):
        history = History(seed, faults=True)
        for _ in range(2):
            with told(history, f"seed {seed}"):
                history.live(rng.randrange(20, 60))
            check_moments(history, rng, cuts)
            with told(history, f"seed {seed}, healed"):
                check_works_again(history)
            check_end(history)
            moment = history.disk.now
            with told(history, f"seed {seed}, going on"):
                history.go_on(moment, next(moment.cuts(rng, 1)))


def check_moments(history: History, rng: random.Random, cuts: float) -> None:
    for moment, known in history.moments():
        if rng.random() < cuts:
            state = next(moment.cuts(rng, 1))
            with told(history, str(state.origin)):
                recovered(state, known, history.book, cut=True, boot=history.boot)
        if rng.random() < cuts / 2:
            with told(history, f"killed after operation {moment.step}"):
                recovered(moment.kill(), known, history.book, cut=False, boot=history.boot)


def check_works_again(history: History) -> None:
    """The faults are over: what was refused is taken, all that was answered is read."""
    while history.pending:
        history.run_work()
        history.finish_work()
    for log in history.data.logs:
        known = history.known(log)
        work_off(log)
        assert log.refused is None
        assert log.flushed == log.end
        history.observe()
        check_topics([log], {log.birth.folder: known}, history.book, cut=False)
        check_deferred(log, known, history.book, cut=False)
        history.tell(log.birth.folder, "safe", known.deferred)
    for _ in range(10):
        history.append()
        history.observe()


def check_end(history: History) -> None:
    known = history.timeline.now
    for state in history.disk.now.every_cut(3):
        with told(history, f"at the end, {state.origin}"):
            recovered(state, known, history.book, cut=True, boot=history.boot)
    with told(history, "killed at the end"):
        recovered(history.disk.now.kill(), known, history.book, cut=False, boot=history.boot)


@pytest.mark.parametrize("seed", range(10))
def test_what_fails_is_told_and_loses_nothing_that_was_answered(seed: int) -> None:
    go_through(seed, cuts=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 510))
def test_five_hundred_histories_of_faults_lose_nothing_that_was_answered(seed: int) -> None:
    go_through(seed, cuts=0.3)
