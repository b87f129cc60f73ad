"""What entries add up to, and what is left of it when some are lost."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.log import entries as e
from penstock.log import state as state_module
from penstock.log.chain import Hole
from penstock.log.state import NodeState
from tests.unit.log.owner import Owner, assert_sound, facts

SEEDS = st.integers(0, 2**32)


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices so small that a few things need many."""
    monkeypatch.setattr(state_module, "THINGS", 1)
    monkeypatch.setattr(state_module, "LIMIT", 2)


def state_of(*entries: e.Entry) -> NodeState:
    state = NodeState()
    state.apply_all(entries)
    return state


def messages(*told: tuple[int, int, int]) -> bytes:
    return e.pack_messages(told)


def ranges(*told: tuple[int, int]) -> bytes:
    return e.pack_ranges(told)


TOPIC = e.TopicCreated(3, "t", "life")
CHANNEL = e.ChannelCreated(5, 3, "c", 10, 1000)
SOME = e.Progress(5, 10, 20, b"", messages((11, 1, e.IN_FLIGHT), (15, 2, e.READY)))


def open_messages(state: NodeState) -> list[int]:
    channel = state.channel("t", "c")
    assert channel
    return [message.offset for message in channel.unfinished]


# Topics


def test_a_topic_begins_with_nothing() -> None:
    topic = state_of(TOPIC).topic("t")
    assert topic
    assert (topic.name, topic.incarnation, topic.paused) == ("t", "life", False)
    assert (topic.routed, topic.following, topic.routed_at) == (0, False, 0)
    assert (topic.retention_bytes, topic.retention_time) == (e.NODES, e.NODES)
    assert list(topic.holes) == []


def test_what_is_said_of_a_topic_is_remembered() -> None:
    hole = Hole(1, 4, "emptied")
    state = state_of(
        TOPIC,
        e.TopicPaused(3, True),
        e.Routed(3, 7, True, 99),
        e.Retention(3, 0, 60),
        e.Holes(3, 1, 4, e.pack_holes([hole])),
        e.ReaderMoved(3, "r", 6, 98, False),
        e.ProducerSeen(3, b"k", 1, b"d", 97),
    )
    topic = state.topic("t")
    assert topic
    assert topic.paused
    assert (topic.routed, topic.following, topic.routed_at) == (7, True, 99)
    assert (topic.retention_bytes, topic.retention_time) == (0, 60)
    assert list(topic.holes) == [hole]
    assert state.readers == {(3, "r"): e.ReaderMoved(3, "r", 6, 98, False)}
    assert state.producers == {(3, b"k"): e.ProducerSeen(3, b"k", 1, b"d", 97)}


def test_a_topic_that_is_created_again_is_not_changed_by_it() -> None:
    state = state_of(TOPIC, e.TopicPaused(3, True), TOPIC)
    assert state.topics[3].paused


def test_with_a_topic_goes_all_that_is_its() -> None:
    # given two topics with a channel, a reader and a producer each
    both = [
        entry
        for number in (3, 4)
        for entry in (
            e.TopicCreated(number, f"t{number}", "life"),
            e.ChannelCreated(number, number, "c", 0, 0),
            e.ReaderMoved(number, "r", 6, 98, False),
            e.ProducerSeen(number, b"k", 1, b"d", 97),
        )
    ]
    # when one is deleted
    state = state_of(*both, e.TopicDeleted(3))
    # then what the other one has is left
    assert state.topics.keys() == state.channels.keys() == {4}
    assert state.readers.keys() == {(4, "r")}
    assert state.producers.keys() == {(4, b"k")}
    assert state.topic("t3") is None
    assert state.channel("t3", "c") is None


def test_a_reader_and_a_producer_are_dropped_by_name() -> None:
    state = state_of(
        TOPIC,
        e.ReaderMoved(3, "r", 6, 98, False),
        e.ProducerSeen(3, b"k", 1, b"d", 97),
        e.ReaderDropped(3, "r"),
        e.ProducerDropped(3, b"k"),
    )
    assert not state.readers
    assert not state.producers


def test_a_topic_whose_deletion_is_lost_makes_room_for_the_next_of_its_name() -> None:
    state = state_of(TOPIC, CHANNEL, e.TopicCreated(9, "t", "next life"))
    assert state.topics.keys() == {9}
    assert not state.channels
    assert state.names == {"t": 9}


def test_a_channel_whose_deletion_is_lost_makes_room_for_the_next_of_its_name() -> None:
    state = state_of(TOPIC, CHANNEL, SOME, e.ChannelCreated(9, 3, "c", 33, 1))
    assert state.channels.keys() == {9}
    assert open_messages(state) == []


@pytest.mark.parametrize("kind", [kind for kind in e.KINDS.values() if kind is not e.TopicCreated])
def test_what_is_said_of_what_is_not_there_is_passed_over(kind: type[e.Entry]) -> None:
    # given a state without topics, when it is told something of one, or of a channel
    state = state_of(_minimal(kind))
    # then it still has none
    assert list(state.slices()) == []


def _minimal(kind: type[e.Entry]) -> e.Entry:
    nothing: dict[str, Any] = {"str": "", "bytes": b"", "FLAG": True}
    make: Any = kind
    entry: e.Entry = make(*(nothing.get(kind.__annotations__[field], 1) for field in kind._fields))
    return entry


def test_numbers_that_entries_mean_are_not_given_again() -> None:
    # given entries that create, and delete
    state = state_of(TOPIC, CHANNEL, e.TopicDeleted(3))
    # then the next numbers are behind all of them
    assert (state.next_topic, state.next_channel) == (4, 6)


# Channels


def test_a_channel_begins_at_its_cursor_with_nothing_unfinished() -> None:
    channel = state_of(TOPIC, CHANNEL).channel("t", "c")
    assert channel
    assert (channel.cursor, channel.since, channel.paused) == (10, 1000, False)
    assert not channel.unfinished


def test_a_channel_that_is_created_again_keeps_its_cursor_and_its_messages() -> None:
    state = state_of(TOPIC, CHANNEL, SOME, e.ChannelCreated(5, 3, "c", 33, 2000))
    assert state.channels[5].cursor == 20
    assert state.channels[5].since == 2000
    assert open_messages(state) == [11, 15]


def test_progress_moves_the_cursor_and_lists_what_is_unfinished_below_it() -> None:
    # given a channel that took 10 to 19 and finished all but two
    state = state_of(TOPIC, CHANNEL, SOME)
    assert state.channels[5].cursor == 20
    assert list(state.channels[5].unfinished) == [(11, 1, e.IN_FLIGHT), (15, 2, e.READY)]
    # when one of them is finished, the other one requeued, and 20 to 24 taken
    state.apply(e.Progress(5, 20, 25, ranges((11, 12)), messages((15, 3, 10**12), (24, 1, e.IN_FLIGHT))))
    # then that is how it is
    assert state.channels[5].cursor == 25
    assert list(state.channels[5].unfinished) == [(15, 3, 10**12), (24, 1, e.IN_FLIGHT)]


def test_progress_behind_a_lost_entry_leaves_the_cursor_where_it_was() -> None:
    # given that the entry is lost that moved the cursor from 20 to 30
    state = state_of(TOPIC, CHANNEL, SOME)
    # when the next one comes
    state.apply(e.Progress(5, 30, 40, ranges((11, 12)), messages((15, 3, e.READY), (35, 1, e.READY))))
    # then everything from 20 on comes again, and what it says of what lies below holds
    assert state.channels[5].cursor == 20
    assert list(state.channels[5].unfinished) == [(15, 3, e.READY)]


def test_progress_said_again_with_more_replaces_what_it_said() -> None:
    # given a block that was written although the write said it had failed
    state = state_of(TOPIC, CHANNEL, SOME)
    # when it is written again, later: 15 was finished meanwhile
    state.apply(e.Progress(5, 10, 21, b"", messages((11, 2, e.READY), (20, 1, e.READY))))
    # then that is how it is
    assert state.channels[5].cursor == 21
    assert list(state.channels[5].unfinished) == [(11, 2, e.READY), (20, 1, e.READY)]


def test_progress_behind_a_lost_rewind_goes_back() -> None:
    # given that the entry is lost that rewound the channel to 5
    state = state_of(TOPIC, CHANNEL, SOME)
    # when the next one comes
    state.apply(e.Progress(5, 5, 13, b"", messages((12, 1, e.READY))))
    # then it holds: below its cursor only 12 is unfinished, everything behind it comes again
    assert state.channels[5].cursor == 13
    assert open_messages(state) == [12]


def test_an_emptied_channel_has_nothing_unfinished_and_forgets_what_was_deferred() -> None:
    state = state_of(TOPIC, CHANNEL, SOME, e.Emptied(5, 30, 5000))
    assert (state.channels[5].cursor, state.channels[5].since) == (30, 5000)
    assert open_messages(state) == []


def test_a_rewound_channel_begins_again_and_keeps_what_is_deferred() -> None:
    state = state_of(TOPIC, CHANNEL, SOME, e.Rewound(5, 2))
    assert (state.channels[5].cursor, state.channels[5].since) == (2, 1000)
    assert open_messages(state) == []


def test_a_page_replaces_what_is_unfinished_in_its_range() -> None:
    state = state_of(TOPIC, CHANNEL, SOME, e.Page(5, 12, 16, messages((13, 7, e.READY))))
    assert open_messages(state) == [11, 13]
    assert state.channels[5].cursor == 20


def test_a_page_that_reaches_beyond_the_cursor_moves_it() -> None:
    state = state_of(TOPIC, CHANNEL, SOME, e.Page(5, 12, 30, messages((25, 7, e.READY))))
    assert open_messages(state) == [11, 25]
    assert state.channels[5].cursor == 30


def test_a_page_behind_a_lost_entry_leaves_the_cursor_where_it_was() -> None:
    state = state_of(TOPIC, CHANNEL, SOME, e.Page(5, 21, 30, messages((25, 7, e.READY))))
    assert open_messages(state) == [11, 15]
    assert state.channels[5].cursor == 20


def test_a_paused_channel_is_paused_until_it_is_not() -> None:
    state = state_of(TOPIC, CHANNEL, e.ChannelPaused(5, True))
    assert state.channels[5].paused
    state.apply(e.ChannelPaused(5, False))
    assert not state.channels[5].paused


# Slices


@pytest.mark.usefixtures("small_slices")
@given(SEEDS)
def test_slices_make_the_state_again_and_change_nothing_where_it_is(seed: int) -> None:
    # given a state that anything has happened to
    owner = Owner(random.Random(seed))
    for _ in range(40):
        owner.applied(owner.act())
    before = facts(owner.state)
    slices = list(owner.state.slices())
    assert all(len(entries) <= 4 for entries in slices)
    # then its slices make another one like it
    assert facts(state_of(*(entry for entries in slices for entry in entries))) == before
    # and leave this one as it is
    owner.state.apply_all(entry for entries in slices for entry in entries)
    assert facts(owner.state) == before


@pytest.mark.usefixtures("small_slices")
@given(SEEDS)
def test_what_happens_between_slices_is_in_neither_too_many_nor_too_few(seed: int) -> None:
    # given a state that anything has happened to, and an empty one
    owner = Owner(random.Random(seed))
    for _ in range(30):
        owner.applied(owner.act())
    alone = NodeState()
    mark = None
    # when slices of the one are told to the other, and meanwhile more happens, which is told to both
    while True:
        entries, mark = owner.state.slice(mark)
        alone.apply_all(entries)
        if mark is None:
            break
        for _ in range(owner.rng.randrange(3)):
            entries = owner.act()
            owner.applied(entries)
            alone.apply_all(entries)
    # then both say the same
    assert facts(alone) == facts(owner.state)


@given(SEEDS, st.data())
def test_whatever_entries_are_lost_each_thing_is_as_it_was_at_some_time(seed: int, data: st.DataObject) -> None:
    # given a state that anything has happened to
    owner = Owner(random.Random(seed))
    for _ in range(25):
        owner.applied(owner.act())
    kept = state_of(*(entry for entries in owner.state.slices() for entry in entries))
    times = [facts(owner.state)]
    # when some of what happens next is lost
    for lost in data.draw(st.lists(st.booleans(), min_size=1, max_size=25)):
        entries = owner.act()
        owner.applied(entries)
        times.append(facts(owner.state))
        if not lost:
            kept.apply_all(entries)
    # then nothing is as it never was: no message finished that was not, none lost, none doubled
    assert_sound(kept)
    for fact, value in facts(kept).items():
        assert value in [time.get(fact) for time in times], fact


def test_a_slice_says_a_channel_from_its_low_water_mark_on() -> None:
    # given two channels, one with unfinished messages
    state = state_of(TOPIC, CHANNEL, SOME, e.ChannelCreated(6, 3, "d", 33, 1))
    # then the one is said from the first of them, together with them, and the other one from its cursor
    said = [entry for entries in state.slices() for entry in entries]
    assert said[-5:] == [
        e.ChannelCreated(5, 3, "c", 11, 1000),
        e.ChannelPaused(5, False),
        e.Page(5, 11, 20, messages((11, 1, e.IN_FLIGHT), (15, 2, e.READY))),
        e.ChannelCreated(6, 3, "d", 33, 1),
        e.ChannelPaused(6, False),
    ]


def test_slices_are_bounded_whatever_the_state() -> None:
    # given many topics, and many messages on few channels
    state = NodeState()
    for number in range(3000):
        state.apply(e.TopicCreated(number, f"t{number}", "life"))
    for number in range(2):
        state.apply(e.ChannelCreated(number, number, "c", 0, 0))
        state.apply(e.Progress(number, 0, 10_000, b"", e.pack_messages((at, 1, e.READY) for at in range(10_000))))
        state.apply(e.Holes(number, 0, 90, e.pack_holes(Hole(at, at + 1, "lost") for at in range(0, 90, 2))))
    # then each slice is a block of some tens of kilobytes
    sizes = [len(e.encode(entries)) for entries in state.slices()]
    assert max(sizes) < 160_000
    assert len(sizes) > 5


def test_a_slice_goes_on_where_the_one_before_ended_whatever_was_deleted() -> None:
    # given channels of which the first slices said some
    state = NodeState()
    state.apply(TOPIC)
    for number in range(20):
        state.apply(e.ChannelCreated(number, 3, f"c{number}", 0, 0))
        state.apply(e.Progress(number, 0, 5000, b"", e.pack_messages((at, 1, e.READY) for at in range(5000))))
    slices = _slices(state)
    said = [entry for entries in islice(slices, 12) for entry in entries]
    # when what they said last is deleted
    last = said[-1]
    assert isinstance(last, e.Page)
    state.apply(e.ChannelDeleted(last.channel))
    # then the next one goes on behind it
    first = next(slices)[0]
    assert isinstance(first, e.ChannelCreated)
    assert first.channel == last.channel + 1


def _slices(state: NodeState) -> Iterator[list[e.Entry]]:
    mark = None
    while True:
        entries, mark = state.slice(mark)
        yield entries
        if mark is None:
            return
