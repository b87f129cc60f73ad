"""A queue of deadlines: in order, lazy, and small however the messages were handed out."""

from __future__ import annotations

import random
import tracemalloc
from array import array
from collections import Counter, deque
from collections.abc import Callable

import pytest

from penstock.broker.deadlines import NEVER, Deadlines
from penstock.broker.slots import IN_FLIGHT, READY, Slots
from penstock.broker.unfinished import Unfinished

COUNT = 7_812  # the 128th part of a million: tables that double are as full then
MINUTE = 60 * 10**9


def test_what_ran_out_is_ready_and_counted_by_holder() -> None:
    # given messages of two holders, of which one is finished
    slots = Slots()
    queue = Deadlines(slots)
    slots.take(0, 5, 1, 0, 10)
    queue.push(10, 0, 5, 1)
    slots.take(5, 2, 2, 0, 20)
    queue.push(20, 5, 2, 2)
    slots.finish(array("Q", [1]), 0, 1, 0, 1)
    # when the time of the first runs out
    expired: Counter[int] = Counter()
    assert [list(woken) for woken in queue.expire(10, expired)] == [[0, 2, 3, 4]]
    # then those that were in flight are ready, and the others have their time
    assert expired == {1: 4}
    assert [message[1] for message in slots.messages(0, 7)] == [READY] * 4 + [IN_FLIGHT] * 2
    assert queue.next_time() == 20
    slots.finish(array("Q", [5, 6]), 0, 2, 0, 2)
    assert queue.next_time() == NEVER
    assert len(queue) == 0


@pytest.mark.parametrize("seed", range(5))
def test_a_long_queue_is_a_plain_one(seed: int) -> None:
    # given runs that come, run out and are finished at random, thousands at a time
    rng, slots = random.Random(seed), Slots()
    queue, model, now = Deadlines(slots), deque[tuple[int, int, int]](), 0
    for _ in range(30):
        for _ in range(rng.choice([1, 20, 1500])):
            now += rng.choice([0, 1])
            first, size = rng.randrange(1 << 60), rng.randint(1, 3)
            slots.take(first, size, 1, now, now + 500)
            queue.push(now + 500, first, size, 1)
            model.append((now + 500, first, size))
        for _, first, _ in rng.sample(model, len(model) // 2):
            slots.finish(array("Q", [first]), 0, 1, 0, 1)
        now += rng.choice([0, 1, 400, 2000])
        expected = []
        while model and model[0][0] <= now:
            _, first, size = model.popleft()
            expected += [message[0] for message in slots.messages(first, first + size)]
        # then just those run out that are left, in order
        assert [offset for woken in queue.expire(now, Counter()) for offset in woken] == expected
        left = next((until for until, first, size in model if slots.messages(first, first + size)), NEVER)
        assert queue.next_time() == left


def by_hundreds(unfinished: Unfinished) -> None:
    for number in range(0, COUNT, 100):
        unfinished.take(number, min(100, COUNT - number), 1, number, MINUTE)


def one_by_one(unfinished: Unfinished) -> None:
    for number in range(COUNT):
        unfinished.take(number, 1, 1, number, MINUTE)


def over_four_thousand_million_offsets(unfinished: Unfinished) -> None:
    for number in range(COUNT):
        unfinished.take(number * 512_000, 1, 1, number, MINUTE)


def once_more(unfinished: Unfinished) -> None:
    over_four_thousand_million_offsets(unfinished)
    for number in range(COUNT):
        unfinished.requeue(number * 512_000, 1, number, 0)
    for number in range(COUNT):
        unfinished.take_again(unfinished.next_ready(1), 1, number, MINUTE)


@pytest.mark.parametrize("hand_out", [by_hundreds, one_by_one, over_four_thousand_million_offsets, once_more])
def test_an_unfinished_message_takes_about_100_bytes_however_it_was_handed_out(
    hand_out: Callable[[Unfinished], None],
) -> None:
    tracemalloc.start()
    try:
        unfinished = Unfinished()
        hand_out(unfinished)
        unfinished.slots.changed()  # as each tick does
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert unfinished.in_flight == COUNT
    assert taken / COUNT < 105
