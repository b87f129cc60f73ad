"""What a batch reads, and how it is dealt to tasks: arithmetic of offsets and holes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.spark.source.offsets import Offsets, Place, Position
from penstock.spark.source.ranges import Range, ranges_of, split, within

PLACE = Place("node", "t")


def spans(most: int) -> st.SearchStrategy[list[tuple[int, int]]]:
    return st.lists(st.tuples(st.integers(0, most), st.integers(0, most)), max_size=5)


@st.composite
def ranges(draw: st.DrawFn, place: Place = PLACE) -> Range:
    first, until = sorted((draw(st.integers(0, 200)), draw(st.integers(0, 200))))
    return Range(place, "a", first, until, within(draw(spans(220)), first, until))


def offsets(*many: Range) -> list[int]:
    """Each offset that may hold a message, one by one."""
    return [offset for each in many for first, until in each.solid() for offset in range(first, until)]


@given(spans(50), st.integers(0, 50), st.integers(0, 50))
def test_spans_are_put_in_order_and_those_that_touch_are_one(
    given_: list[tuple[int, int]], first: int, until: int
) -> None:
    found = within(given_, first, until)
    wanted = {offset for begin, end in given_ for offset in range(max(begin, first), min(end, until))}
    assert {offset for begin, end in found for offset in range(begin, end)} == wanted
    assert all(before[1] < after[0] for before, after in pairwise(found))


@given(ranges(), st.integers(0, 250))
def test_a_cut_takes_as_many_as_it_says_from_the_front(whole: Range, count: int) -> None:
    cut = whole.cut(count)
    assert offsets(cut) == offsets(whole)[:count]
    assert cut.size == min(count, whole.size)
    # and the rest is what is behind it
    assert offsets(whole.after(cut.until)) == offsets(whole)[count:]


@given(ranges())
def test_who_takes_all_leaves_no_hole_behind(whole: Range) -> None:
    assert whole.cut(whole.size).until == whole.until


@given(st.lists(st.sampled_from("abc").flatmap(lambda name: ranges(Place(name[0], f"t{name}")))), st.integers(1, 70))
def test_parts_have_each_message_once_and_none_has_too_many(many: list[Range], most: int) -> None:
    # given ranges on several nodes, each place once
    many = list({each.place: each for each in many}.values())
    # when they are dealt
    parts = split(many, most)
    # then nothing is left out, nothing comes twice, and no part is empty or too large
    dealt = sorted((each.place, offset) for part in parts for each in part.ranges for offset in offsets(each))
    assert dealt == sorted((each.place, offset) for each in many for offset in offsets(each))
    assert all(0 < sum(each.size for each in part.ranges) <= most for part in parts)
    # and each is of one node, in nearly equal shares
    for node in {part.node for part in parts}:
        sizes = [sum(each.size for each in part.ranges) for part in parts if part.node == node]
        assert max(sizes) - min(sizes) <= 1
        assert len(sizes) == -(-sum(sizes) // most)
    assert all(each.place.node == part.node for part in parts for each in part.ranges)


def test_parts_of_several_nodes_come_in_turn() -> None:
    many = [Range(Place(node, "t"), "a", 0, 20) for node in "ab"]
    assert [part.node for part in split(many, 10)] == ["a", "b", "a", "b"]


def test_small_topics_share_a_task() -> None:
    many = [Range(Place("a", f"t{number:02}"), "a", 0, 3) for number in range(10)]
    assert [len(part.ranges) for part in split(many, 100)] == [10]


def at(**offsets: int) -> dict[Place, Position]:
    return {Place("node", topic): Position("a", offset) for topic, offset in offsets.items()}


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        pytest.param(Offsets(at(t=3)), Offsets(at(t=9)), [(3, 9)], id="goes-on"),
        pytest.param(Offsets(at(t=9)), Offsets(at(t=9)), [], id="nothing-new"),
        pytest.param(Offsets(at(t=9)), Offsets({}), [], id="gone"),
        pytest.param(Offsets({}), Offsets(at(t=9), begins={PLACE: 4}), [(4, 9)], id="joined"),
        pytest.param(Offsets(at(t=3)), Offsets(at(t=9), begins={PLACE: 5}), [(5, 9)], id="behind-a-loss"),
        pytest.param(
            Offsets({PLACE: Position("other", 300)}), Offsets(at(t=9), begins={PLACE: 0}), [(0, 9)], id="made-again"
        ),
        pytest.param(Offsets(at(t=8), initial=True), Offsets(at(t=9), begins={PLACE: 2}), [(2, 9)], id="first-batch"),
    ],
)
def test_a_batch_is_what_its_two_offsets_say(start: Offsets, end: Offsets, expected: list[tuple[int, int]]) -> None:
    assert [(each.first, each.until) for each in ranges_of(start, end)] == expected


def test_a_batch_skips_what_its_end_says() -> None:
    end = Offsets(at(t=9), skips={PLACE: ((1, 4), (6, 7))})
    [found] = ranges_of(Offsets(at(t=2)), end)
    assert offsets(found) == [4, 5, 7, 8]
