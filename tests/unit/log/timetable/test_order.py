"""Deferred entries: read, sorted, dealt and measured as plain Python would."""

from __future__ import annotations

from array import array
from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.log.timetable.order import by_due, deal, due_times, fitting
from penstock.protocol.batch import RECORD, put_record

TIMES = st.integers(0, 2**64 - 1) | st.integers(10**18, 10**18 + 300) | st.sampled_from([0, 1, 2**63, 2**64 - 1])


def entries(dues: list[int], sizes: list[int] | None = None) -> tuple[bytearray, array[int]]:
    """Records that are due then, and where each begins."""
    bodies = [b"x" * size for size in sizes or [0] * len(dues)]
    data = bytearray(sum(map(len, bodies)) + RECORD * len(bodies))
    places = array("I")
    at = 0
    for due, body in zip(dues, bodies, strict=True):
        places.append(at)
        at = put_record(data, at, body, 1, due)
    return data, places


@given(st.lists(TIMES, max_size=40))
def test_due_times_are_read_from_where_a_record_has_its_id(dues: list[int]) -> None:
    data, places = entries(dues)
    assert list(due_times(data, places)) == dues
    assert list(due_times(memoryview(bytes(data)), places[::-1])) == dues[::-1]


@pytest.mark.parametrize("place", [1, 30, 2**31 - 1, 2**31, 2**32 - 1])
def test_an_entry_that_is_not_all_inside_the_data_is_refused(place: int) -> None:
    data, _ = entries([7])
    with pytest.raises(ValueError, match="no such entry"):
        due_times(data, array("I", [place]))
    with pytest.raises(ValueError, match="no such entry"):
        fitting(data, array("I", [place]), 0, 1, 100)


@pytest.mark.parametrize("digits", [b"g" * 16, b"\xff" * 16, b" " * 16, b"\x00" * 16])
def test_digits_that_are_none_are_some_time_and_no_error(digits: bytes) -> None:
    data, places = entries([0])
    data[14:30] = digits
    assert 0 <= due_times(data, places)[0] < 2**64


@given(st.lists(TIMES, max_size=60))
def test_entries_are_sorted_by_due_time_and_then_as_they_stand(dues: list[int]) -> None:
    order = by_due(array("Q", dues))
    assert list(range(len(dues)) if order is None else order) == sorted(range(len(dues)), key=dues.__getitem__)
    assert (order is None) == (dues == sorted(dues))


@given(st.lists(TIMES, max_size=60), st.lists(TIMES, max_size=9, unique=True))
def test_entries_are_dealt_to_the_ranges_between_the_bounds(dues: list[int], bounds: list[int]) -> None:
    bounds.sort()
    # when they are dealt
    dealt, ends = deal(array("Q", dues), array("I", range(len(dues))), array("Q", bounds))
    # then each range has its own, in the order they had
    expected: list[list[int]] = [[] for _ in range(len(bounds) + 1)]
    for number, due in enumerate(dues):
        expected[bisect_right(bounds, due)].append(number)
    assert [list(dealt[a:b]) for a, b in zip([0, *ends], ends, strict=False)] == expected


def test_each_entry_needs_a_due_time_to_be_dealt() -> None:
    with pytest.raises(ValueError, match="due time"):
        deal(array("Q", [1, 2]), array("I", [0]), array("Q"))


@given(st.lists(st.integers(0, 60), min_size=1, max_size=20), st.data())
def test_as_many_entries_as_fit_and_one_at_least(sizes: list[int], draw: st.DataObject) -> None:
    data, places = entries([1] * len(sizes), sizes)
    start = draw.draw(st.integers(0, len(sizes) - 1))
    stop = draw.draw(st.integers(start + 1, len(sizes)))
    room = draw.draw(st.integers(0, 400))
    # when they are measured
    found, size = fitting(data, places, start, stop, room)
    # then one more would not have fitted
    lengths = [RECORD + size for size in sizes]
    assert size == sum(lengths[start:found])
    assert found == start + 1 or size <= room
    assert found == stop or size + lengths[found] > room


def test_entries_that_are_not_there_do_not_fit() -> None:
    data, places = entries([1, 2])
    assert fitting(data, places, 1, 1, 99) == (1, 0)
    for start, stop in ((0, 3), (-1, 1)):
        with pytest.raises(ValueError, match="no such entries"):
            fitting(data, places, start, stop, 99)
