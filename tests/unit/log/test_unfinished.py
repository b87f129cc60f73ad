"""Unfinished messages and holes, against a dict and a set."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.log.chain import Hole
from penstock.log.entries import END, IN_FLIGHT, READY, Message, pack_messages, pack_ranges, unpack_messages
from penstock.log.unfinished import Holes, Unfinished, below

# Offsets around the edges of pages, so that ranges begin, end and lie across them.
OFFSETS = st.one_of(
    *(st.integers(edge, edge + 8) for edge in (0, 65_530, 131_070, 2**32 - 4)), st.just(END - 1)
)  # fmt: skip
MESSAGES = st.dictionaries(OFFSETS, st.tuples(st.integers(0, 9), st.sampled_from((IN_FLIGHT, READY, 10**12))))
RANGES = st.tuples(OFFSETS, OFFSETS).map(sorted)
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("put"), MESSAGES),
        st.tuples(st.just("finish"), st.lists(RANGES, max_size=5)),
        st.tuples(st.just("clear"), st.none()),
    ),
    max_size=12,
)


def packed(messages: dict[int, tuple[int, int]]) -> bytes:
    return pack_messages((offset, *value) for offset, value in sorted(messages.items()))


@given(CHANGES, st.integers(1, 9))
def test_unfinished_messages_are_what_a_dict_would_say(changes: list[tuple[str, object]], limit: int) -> None:
    # given any changes, made here and in a dict
    unfinished, model = Unfinished(), dict[int, tuple[int, int]]()
    for what, value in changes:
        if isinstance(value, dict):
            unfinished.put(packed(value))
            model |= value
        elif isinstance(value, list):
            unfinished.finish(pack_ranges(value))
            model = {o: v for o, v in model.items() if not any(first <= o < next_ for first, next_ in value)}
        else:
            assert what == "clear"
            unfinished.clear()
            model = {}
    # then both hold the same
    expected = [(offset, *value) for offset, value in sorted(model.items())]
    assert list(unfinished) == expected
    assert len(unfinished) == len(expected)
    assert bool(unfinished) is bool(expected)
    # and pages of any size say the same, without a gap between them
    at, found = 0, list[Message]()
    while at < END:
        next_, page = unfinished.page(at, limit)
        messages = list(unpack_messages(page))
        assert len(messages) <= limit
        assert all(at <= message.offset < next_ for message in messages)
        at, found = next_, found + messages
    assert found == expected


def test_a_range_over_everything_is_finished_at_once() -> None:
    # given messages that are spread over all offsets there are
    unfinished = Unfinished()
    unfinished.put(pack_messages((number << 40, 1, READY) for number in range(1000)))
    # when a range from the second to the last is finished
    unfinished.remove(1, END)
    # then the first is left
    assert [message.offset for message in unfinished] == [0]


@given(MESSAGES, OFFSETS)
def test_packed_messages_are_cut_at_a_cursor(messages: dict[int, tuple[int, int]], cursor: int) -> None:
    kept = {offset: value for offset, value in messages.items() if offset < cursor}
    assert below(packed(messages), cursor) == packed(kept)


# Holes

HOLES = st.builds(
    lambda ends, why: Hole(min(ends), max(ends), why),
    st.tuples(st.integers(0, 30), st.integers(0, 30)),
    st.sampled_from(("emptied", "lost")),
)


@given(st.lists(HOLES, max_size=10), st.integers(1, 4))
def test_holes_are_what_a_list_of_offsets_would_say(replaced: list[Hole], limit: int) -> None:
    # given ranges that are made holes, each whatever it was before; those that begin at an even offset are made whole
    holes, model = Holes(), [""] * 31
    for hole in replaced:
        whole = hole.first % 2 == 0
        holes.replace(hole.first, hole.next, [] if whole else [hole])
        model[hole.first : hole.next] = ["" if whole else hole.why] * (hole.next - hole.first)
    # then each offset has its reason, and no hole is empty or touches one of its kind
    found = list(holes)
    told = [""] * 31
    for hole in found:
        assert hole.first < hole.next
        told[hole.first : hole.next] = [hole.why] * (hole.next - hole.first)
    assert told == model
    assert all(one.next < two.first or (one.next == two.first and one.why != two.why) for one, two in pairwise(found))
    # and pages of any size say the same
    at, pages = 0, Holes()
    while at < END:
        next_, page = holes.page(at, limit)
        assert len(page) <= limit
        pages.replace(at, next_, page)
        at = next_
    assert list(pages) == found


@pytest.mark.parametrize(
    ("second", "found"),
    [
        pytest.param(Hole(5, 9, "lost"), [Hole(2, 9, "lost")], id="touching"),
        pytest.param(Hole(5, 9, "emptied"), [Hole(2, 5, "lost"), Hole(5, 9, "emptied")], id="touching-another-kind"),
        pytest.param(Hole(6, 9, "lost"), [Hole(2, 5, "lost"), Hole(6, 9, "lost")], id="apart"),
        pytest.param(
            Hole(3, 4, "emptied"), [Hole(2, 3, "lost"), Hole(3, 4, "emptied"), Hole(4, 5, "lost")], id="inside"
        ),
    ],
)
def test_two_holes_beside_each_other(second: Hole, found: list[Hole]) -> None:
    holes = Holes()
    holes.replace(2, 5, [Hole(2, 5, "lost")])
    holes.replace(second.first, second.next, [second])
    assert list(holes) == found
