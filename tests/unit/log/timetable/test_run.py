"""Entries in memory, and the keys that slices of them have."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.log.timetable.run import GRAIN, Memory, Run, pack, unpack
from penstock.protocol.batch import RECORD, encode, positions, put_records

NUMBERS = st.lists(st.integers(0, 2**32 - 1), max_size=20)


@given(st.integers(0, 2**64 - 1), NUMBERS)
def test_a_key_says_bucket_and_entries(serial: int, numbers: list[int]) -> None:
    key = pack(serial, array("I", numbers))
    assert key == serial.to_bytes(8, "big") + b"".join(number.to_bytes(4, "big") for number in numbers)
    assert unpack(key) == (serial, array("I", numbers))


@pytest.mark.parametrize("key", [b"", b"1234567", b"123456789", b"1234567890123"])
def test_another_producers_key_names_no_entry(key: bytes) -> None:
    assert unpack(key) == (0, array("I"))


def batch(due: int, count: int = 1) -> bytearray:
    """Entries without bodies, all due then."""
    payload = bytearray(RECORD * count)
    put_records(payload, 0, [b""] * count, 1, due, 0)
    return encode(0, count, 1, payload, 1)


def run(*dues: int, first: int = 0) -> Run:
    source = b"".join(batch(due) for due in dues)
    numbers = array("I", range(first, first + len(dues)))
    return Run(source, positions(source, 0, len(source)), numbers, array("Q", dues))


def test_a_run_is_cut_by_time_and_by_room_and_gives_one_at_least() -> None:
    entries = run(10, 20, 20, 30)
    assert list(entries.cut(20, RECORD * 2).dues) == [10, 20]
    assert (len(entries), entries.head) == (2, 20)
    assert list(entries.cut(29, 0).numbers) == [2]
    assert list(entries.cut(30, 1000).dues) == [30]
    assert len(entries) == 0


def test_what_joins_and_what_was_read_come_in_order_to_within_the_grain() -> None:
    memory = Memory()
    memory.add(run(100, 100 + 4 * GRAIN))
    memory.join(50, 7, 2, batch(50, 2))
    memory.join(100 + 2 * GRAIN, 9, 1, batch(100 + 2 * GRAIN))
    assert memory.head == 50
    found = []
    while memory.head is not None:
        found.append(list(memory.take(1 << 60, 1 << 20).numbers))
    assert [number for numbers in found for number in numbers] == [7, 8, 0, 9, 1]


def test_what_is_put_back_comes_before_what_is_due_then() -> None:
    memory = Memory()
    memory.add(run(5, 5, 5))
    taken = memory.take(5, RECORD)
    memory.put_back(taken)
    assert [list(memory.take(5, RECORD).numbers) for _ in range(3)] == [[0], [1], [2]]
    assert (memory.head, memory.size) == (None, 0)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=12), st.integers(1, 15))
def test_memory_lists_the_first_that_are_due_and_keeps_them(dues: list[int], limit: int) -> None:
    memory = Memory()
    for number, due in enumerate(dues):
        if number % 2:
            memory.join(due, number, 1, batch(due))
        else:
            memory.add(run(due, first=number))
    assert [entry.due for entry in memory.entries(limit)] == sorted(dues)[:limit]
    assert sum(len(memory.take(100, 1 << 20)) for _ in iter(lambda: memory.head, None)) == len(dues)
