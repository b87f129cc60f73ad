"""Slots against a dict: what is taken, finished, requeued and found again, at dense and at far offsets."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable

import pytest

from penstock.broker.slots import DELAYED, IN_FLIGHT, PAGE_BITS, READY, Slots
from penstock.log import entries as e

DUE = {IN_FLIGHT: e.IN_FLIGHT, READY: e.READY}

OFFSETS = {
    "dense": lambda rng: rng.randrange(300),
    "far apart": lambda rng: rng.randrange(1 << 62),
    "all in step": lambda rng: rng.randrange(500) << 12,
    "at the top": lambda rng: (1 << 62) - 1 - rng.randrange(300),
}


@pytest.mark.parametrize("offsets", OFFSETS.values(), ids=OFFSETS.keys())
def test_slots_are_a_dict_of_offsets(offsets: Callable[[random.Random], int]) -> None:
    # given a table and a dict
    rng = random.Random(1)
    slots = Slots()
    model: dict[int, int] = {}
    for _ in range(5000):
        offset = offsets(rng)
        # when messages are taken and finished in any order
        if rng.random() < 0.5:
            if offset not in model:
                slots.take(offset, 1, 1 + offset % 3, 0, 9)
                model[offset] = 1 + offset % 3
        else:
            holder = rng.randint(1, 3)
            failed = slots.finish(array("Q", [offset + 7]), 0, 1, 7, holder)
            # then just those are finished that their holder has
            assert (failed is None) == (model.get(offset) == holder)
            if failed is None:
                del model[offset]
        assert len(slots) == len(model)
    assert [message[0] for message in slots.messages(0, 1 << 63)] == sorted(model)
    assert slots.lowest(1 << 63) == min(model)
    assert [slots.in_flight_of(holder) for holder in (1, 2, 3)] == [list(model.values()).count(h) for h in (1, 2, 3)]


def test_an_id_below_the_base_and_one_of_nobody_are_not_in_flight() -> None:
    slots = Slots()
    slots.take(0, 3, 1, 0, 9)
    assert slots.finish(array("Q", [99, 100, 103, 2**64 - 1]), 0, 4, 100, 1) == [0, 2, 3]


def test_attempts_stop_where_their_field_ends() -> None:
    # given a message that was tried as often as can be counted
    slots = Slots()
    slots.put(5, READY, 65_535, 0)
    # when it is handed out once more
    tried = slots.take_again(array("Q", [5]), 1, 0, 9)
    # then it is not tried for the first time
    assert list(tried) == [65_535]


def test_a_message_is_in_one_place_only() -> None:
    slots = Slots()
    slots.take(5, 1, 1, 0, 9)
    assert slots.requeue(5, 1, DELAYED, 50)
    assert not slots.requeue(5, 1, READY, 0)
    assert slots.finish(array("Q", [5]), 0, 1, 0, 1) == [0]
    assert list(slots.take_again(array("Q", [5]), 2, 0, 9)) == [0]
    assert list(slots.wake(5, 1, DELAYED, 49)) == []
    assert list(slots.wake(5, 1, DELAYED, 50)) == [5]
    assert list(slots.take_again(array("Q", [5]), 2, 0, 9)) == [2]
    assert slots.messages(0, 10) == [(5, IN_FLIGHT, 2, 9)]


def test_what_never_left_the_process_was_not_tried() -> None:
    slots = Slots()
    slots.take(5, 3, 1, 0, 9)
    assert list(slots.take_back(4, 3, 1)) == [5, 6]
    assert slots.messages(0, 10) == [(5, READY, 0, 9), (6, READY, 0, 9), (7, IN_FLIGHT, 1, 9)]


def test_a_touch_reaches_no_further_than_the_maximum() -> None:
    slots = Slots()
    slots.take(5, 1, 1, 100, 160)
    assert slots.touch(5, 1, 190, 120) == 190
    assert slots.touch(5, 1, 400, 120) == 220
    assert slots.touch(5, 2, 400, 120) == -1


def test_changed_pages_are_told_once() -> None:
    slots = Slots()
    slots.take(1000, 100, 1, 0, 9)
    assert slots.changed() == [0, 1]
    assert slots.changed() == []
    slots.finish(array("Q", [1030]), 0, 1, 0, 1)
    assert slots.changed() == [1]


def test_memory_is_given_back_after_a_crowd() -> None:
    slots = Slots()
    slots.take(0, 100_000, 1, 0, 9)
    slots.finish(array("Q", range(99_999)), 0, 99_999, 0, 1)
    slots.shrink()
    assert slots.messages(0, 1 << 60) == [(99_999, IN_FLIGHT, 1, 9)]
    slots.finish(array("Q", [99_999]), 0, 1, 0, 1)
    slots.shrink()
    assert len(slots) == 0
    slots.take(7, 1, 1, 0, 9)
    assert slots.lowest(99) == 7


def test_the_first_of_a_state_by_offset() -> None:
    # given messages in every state, in no order
    slots = Slots()
    offsets = list(range(0, 3000, 3))
    random.Random(1).shuffle(offsets)
    for offset in offsets:
        slots.take(offset, 1, 1, 0, 50)
        if offset % 2:
            slots.requeue(offset, 1, READY, 0)
    # then so many are found, and no other state's
    assert slots.first(IN_FLIGHT, 3) == [(0, 1, 50), (6, 1, 50), (12, 1, 50)]
    assert [offset for offset, *_ in slots.first(READY, 4)] == [3, 9, 15, 21]
    assert [offset for offset, *_ in slots.first(READY, 10_000)] == list(range(3, 3000, 6))
    assert slots.first(DELAYED, 4) == Slots().first(READY, 4) == []


@pytest.mark.parametrize("offsets", OFFSETS.values(), ids=OFFSETS.keys())
def test_what_is_packed_is_what_the_journal_reads(offsets: Callable[[random.Random], int]) -> None:
    # given messages in every state
    rng, slots, shift = random.Random(2), Slots(), 1_700_000_000 * 10**9 + 7
    for offset in {offsets(rng) for _ in range(400)}:
        slots.take(offset, 1, 1, 0, 9)
        if state := rng.choice([0, READY, DELAYED]):
            slots.requeue(offset, 1, state, rng.randrange(10**12))
    # when those of a range, or of some pages, are packed
    low, high = sorted(offsets(rng) for _ in range(2))
    found = slots.messages(low, high)
    pages = sorted({offset >> PAGE_BITS for offset, *_ in slots.messages(0, 1 << 63) if rng.random() < 0.5})
    in_pages = [each for each in slots.messages(0, high) if each[0] >> PAGE_BITS in pages]
    # then the journal reads them
    for packed, expected in [
        (slots.packed(low, high, shift), found),
        (slots.packed_pages(pages, high, shift), in_pages),
        (slots.packed(0, 1 << 63, shift), slots.messages(0, 1 << 63)),
    ]:
        assert list(e.unpack_messages(packed)) == [
            e.Message(offset, attempts, DUE[state] if state in DUE else -(-(until + shift) // 10**6))
            for offset, state, attempts, until in expected
        ]


@pytest.mark.parametrize("limit", [1, 7, 100, 5000])
@pytest.mark.parametrize("offsets", OFFSETS.values(), ids=OFFSETS.keys())
def test_a_stretch_of_about_so_many_messages(offsets: Callable[[random.Random], int], limit: int) -> None:
    # given messages, some of them close together
    rng, slots = random.Random(3), Slots()
    some = {offsets(rng) for _ in range(1000)}
    there = sorted(some | {min(some) + number for number in range(0, 2000, 5)})
    for offset in there:
        slots.put(offset, READY, 1, 0)
    # when they are gone through, a stretch at a time
    at, found = 0, []
    while at < 1 << 63:
        stop = slots.narrow(at, 1 << 63, limit)
        inside = [offset for offset, *_ in slots.messages(at, stop)]
        # then each but the last has enough, and none too many
        assert len(inside) <= 2 * limit
        assert len(inside) >= limit or stop == 1 << 63
        found += inside
        at = stop
    assert found == there
