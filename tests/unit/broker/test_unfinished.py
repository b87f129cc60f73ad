"""Unfinished messages against a plain model: each in one place, deadlines and delays to the tick."""

from __future__ import annotations

import random
from array import array
from collections import Counter
from typing import Any

import pytest

from penstock.broker.unfinished import GRAIN, Unfinished

BASE = 1000


class Model:
    """Offset -> [place, attempts, until, holder, since]: what `Unfinished` promises, the slow way."""

    def __init__(self) -> None:
        self.messages: dict[int, list[Any]] = {}

    def in_place(self, place: str) -> int:
        return sum(message[0] == place for message in self.messages.values())

    def taken(self, offset: int, attempts: int, holder: int, now: int, timeout: int) -> None:
        self.messages[offset] = ["in flight", attempts, now + timeout, holder, now]

    def has(self, offset: int, holder: int) -> bool:
        return bool(self.messages[offset][0] == "in flight" and self.messages[offset][3] == holder)

    def requeued(self, offset: int, now: int, delay: int) -> None:
        attempts = self.messages[offset][1]
        if delay:
            self.messages[offset] = ["delayed", attempts, -(-(now + delay) // GRAIN) * GRAIN, 0, 0]
        else:
            self.messages[offset] = ["ready", attempts, 0, 0, 0]

    def pass_time(self, place: str, now: int) -> Counter[int]:
        due = [m for m in self.messages.values() if m[0] == place and m[2] <= now]
        holders = Counter(message[3] for message in due)
        for message in due:
            message[:] = ["ready", message[1], 0, 0, 0]
        return holders

    def next_time(self) -> int | None:
        return min((m[2] for m in self.messages.values() if m[0] != "ready"), default=None)


class History:
    """One random life of a channel's unfinished messages, beside its model."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.real = Unfinished()
        self.model = Model()
        self.now = 0
        self.cursor = 0

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.now += self.rng.choice([0, 1, GRAIN // 2, GRAIN * 3])
            self.rng.choice([self.take, self.take_again, self.finish, self.requeue, self.touch])()
            assert self.real.expire(self.now) == self.model.pass_time("in flight", self.now)
            assert self.real.end_delays(self.now) == self.model.pass_time("delayed", self.now).total()
            self.compare()

    def compare(self) -> None:
        real, model = self.real, self.model
        counts = [model.in_place(place) for place in ("in flight", "ready", "delayed")]
        assert [real.in_flight, real.ready, real.delayed] == counts
        assert len(real) == len(model.messages)
        assert real.next_time() == model.next_time()

    def take(self) -> None:
        count, holder, timeout = self.rng.randint(1, 20), self.rng.randint(1, 9), self.rng.choice([1, 5]) * GRAIN
        self.real.take(self.cursor, count, holder, self.now, timeout)
        for offset in range(self.cursor, self.cursor + count):
            self.model.taken(offset, 1, holder, self.now, timeout)
        self.cursor += count + self.rng.choice([0, 0, 100_000])

    def take_again(self) -> None:
        offsets, holder = self.real.next_ready(self.rng.randint(1, 30)), self.rng.randint(1, 9)
        tried = self.real.take_again(offsets, holder, self.now, 5 * GRAIN)
        for offset, attempts in zip(offsets, tried, strict=True):
            place, before, *_ = self.model.messages[offset]
            assert (place, attempts) == ("ready", before + 1)
            self.model.taken(offset, attempts, holder, self.now, 5 * GRAIN)

    def _some(self, most: int) -> list[int]:
        offsets = sorted(self.model.messages)
        return self.rng.sample(offsets, min(len(offsets), self.rng.randint(1, most)))

    def finish(self) -> None:
        offsets, holder = self._some(20), self.rng.randint(1, 9)
        ids = array("Q", [BASE + offset for offset in offsets])
        failed = self.real.finish(ids, 0, len(ids), BASE, holder) or []
        assert failed == [place for place, offset in enumerate(offsets) if not self.model.has(offset, holder)]
        for place, offset in enumerate(offsets):
            if place not in failed:
                del self.model.messages[offset]

    def requeue(self) -> None:
        for offset in self._some(1):
            holder, delay = self.rng.choice([self.model.messages[offset][3], 3]), self.rng.choice([0, 1, 7 * GRAIN])
            done = self.real.requeue(offset, holder, self.now, delay)
            assert done == self.model.has(offset, holder)
            if done:
                self.model.requeued(offset, self.now, delay)

    def touch(self) -> None:
        for offset in self._some(1):
            message = self.model.messages[offset]
            done = self.real.touch(offset, message[3], self.now, 4 * GRAIN, 8 * GRAIN)
            assert done == (message[0] == "in flight")
            if done:
                message[2] = min(self.now + 4 * GRAIN, message[4] + 8 * GRAIN)


@pytest.mark.parametrize("seed", range(40))
def test_any_history_agrees_with_the_model(seed: int) -> None:
    History(seed).run(200)


def test_a_message_that_takes_its_time_keeps_no_finished_ones() -> None:
    # given a message that is held for long, and ten thousand behind it that are finished at once
    unfinished = Unfinished()
    unfinished.take(0, 1, 1, 0, 10**12)
    for offset in range(1, 10_001):
        unfinished.take(offset, 1, 1, offset, 10**12)
        unfinished.finish(array("Q", [offset]), 0, 1, 0, 1)
    # then few deadlines are remembered
    assert sum(map(len, unfinished._deadlines.values())) < 200
    assert unfinished.next_time() == 10**12


def test_what_is_cleared_is_not_in_flight() -> None:
    unfinished = Unfinished()
    unfinished.take(0, 5, 1, 0, 100)
    unfinished.requeue(0, 1, 0, 50)
    unfinished.clear()
    assert unfinished.finish(array("Q", [1]), 0, 1, 0, 1) == [0]
    assert (len(unfinished), unfinished.delayed, unfinished.next_time()) == (0, 0, None)
    assert len(unfinished.next_ready(9)) == 0
