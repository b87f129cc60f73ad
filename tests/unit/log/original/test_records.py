"""Records are found where they are whole, believable, and followed by another or by the end of the file."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.log.original.records import LARGEST, SMALLEST, believable_size, walk

from .folders import START, record, records


@given(st.lists(st.binary(max_size=50), max_size=10))
def test_records_come_out_as_they_went_in(bodies: list[bytes]) -> None:
    # given records of any bodies
    data = b"".join(record(n, body, attempts=n) for n, body in enumerate(bodies))
    # when they are walked
    places, stop, bad = walk(data, final=True)
    # then each is found with its fields
    assert (stop, bad) == (len(data), False)
    assert [(time, attempts, id_, data[at + 30 : at + 4 + size]) for at, size, time, attempts, id_ in places] == [
        (START + n, n, b"%016x" % n, body) for n, body in enumerate(bodies)
    ]


@pytest.mark.parametrize("cut", range(len(record(2))))
def test_a_record_counts_when_the_head_of_another_follows_it(cut: int) -> None:
    # given two records and the beginning of a third, in the midst of a file
    data = records(0, 1) + record(2)[:cut]
    # when they are walked
    places, stop, bad = walk(data, final=False)
    # then the second one waits for the head of the third
    assert (len(places), bad) == (1 if cut < 30 else 2, False)
    assert stop == len(records(*range(len(places))))


def test_a_record_counts_at_the_end_of_a_file_only_when_the_file_ends_with_it() -> None:
    assert walk(records(0, 1) + record(2)[:-1], final=True)[1] == len(record(0))
    assert walk(record(0), final=True) == ([(0, 35, START, 0, b"%016x" % 0)], len(record(0)), False)
    assert walk(record(0), final=False) == ([], 0, False)


@pytest.mark.parametrize(
    ("size", "bad"),
    [
        pytest.param(0, True, id="0"),
        pytest.param(1, True, id="1"),
        pytest.param(SMALLEST - 1, True, id="smaller than any"),
        pytest.param(LARGEST, False, id="the limit"),
        pytest.param(LARGEST + 1, True, id="over the limit"),
        pytest.param(2**31 - 1, True, id="2**31 - 1"),
        pytest.param(2**31, True, id="2**31"),
        pytest.param(2**32 - 1, True, id="2**32 - 1"),
    ],
)
def test_a_hostile_size_is_no_record(size: int, bad: bool) -> None:
    # given two good records and one whose size is wrong
    data = records(0, 1) + struct.pack(">I", size) + record(1)[4:] + bytes(100)
    # when they are walked
    places, stop, was_bad = walk(data, final=False)
    # then none is made of it, and what stands before a bad one is in doubt; at the limit it may still become a record
    assert ([place[0] for place in places], was_bad) == ([0] if bad else [0, len(record(0))], bad)
    assert stop == len(records(*range(len(places))))


@pytest.mark.parametrize(
    "damaged",
    [
        pytest.param(record(1, time=2**63), id="a time below zero"),
        pytest.param(record(1).replace(b"%016x" % 1, b"%016X" % 0xABCDEF), id="an id in capitals"),
        pytest.param(record(1).replace(b"%016x" % 1, b"00000000x0000001"), id="an id that is no number"),
    ],
)
def test_a_head_that_nsqd_would_not_write_is_no_record(damaged: bytes) -> None:
    places, stop, bad = walk(records(7, 8) + damaged, final=True)
    assert (len(places), stop, bad) == (1, len(record(7)), True)
    assert believable_size(damaged) == 0


def test_the_size_of_a_head_is_known_once_the_head_is_whole() -> None:
    assert believable_size(record(1)[:30]) == len(record(1)) - 4
    assert believable_size(record(1)[:29]) == 0


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_are_walked_without_an_error(data: bytes, final: bool) -> None:
    places, stop, _ = walk(data, final)
    assert stop == sum(4 + size for _, size, _, _, _ in places) <= len(data)
