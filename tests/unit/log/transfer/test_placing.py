"""A channel's cursor and what is unfinished below it say exactly which messages it holds, in few words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.log.entries import READY, ChannelCreated, Message, Progress, TopicCreated, unpack_messages
from penstock.log.state import ChannelState, NodeState
from penstock.log.transfer.placing import PAGE, Placing


def placed(held: dict[int, int], routed: int) -> tuple[list[Progress], Placing]:
    entries: list[Progress] = []
    placing = Placing(7, entries.append)
    for offset in sorted(held):
        placing.add(offset, held[offset])
    placing.finish(routed)
    return entries, placing


def folded(entries: list[Progress]) -> ChannelState:
    state = NodeState()
    state.apply_all([TopicCreated(0, "t", "1"), ChannelCreated(7, 0, "c", 0, 0), *entries])
    return state.channels[7]


@given(st.dictionaries(st.integers(0, 30), st.sampled_from([0, 0, 0, 1, 65535])), st.integers(0, 3))
def test_what_the_channel_holds_is_what_the_journal_says(held: dict[int, int], more: int) -> None:
    # given a channel that holds any of the log's messages
    routed = max(held, default=-1) + 1 + more
    # when it is placed
    entries, placing = placed(held, routed)
    # then the journal adds up to it
    channel = folded(entries)
    assert channel.cursor <= routed
    said = {message.offset: message.attempts for message in channel.unfinished}
    assert said | dict.fromkeys(range(channel.cursor, routed), 0) == held
    assert all(message.due == READY for message in channel.unfinished)
    # and it is counted
    assert (placing.messages, placing.attempts) == (len(held), sum(held.values()))


@given(st.dictionaries(st.integers(0, 30), st.sampled_from([0, 0, 0, 1])))
def test_the_cursor_lies_as_low_as_it_can(held: dict[int, int]) -> None:
    # given a channel, when it is placed
    routed = 31
    channel = folded(placed(held, routed)[0])
    # then right before its cursor stands something that is finished, or was tried
    before = channel.cursor - 1
    assert before < 0 or held.get(before, 1) > 0


def test_a_channel_that_holds_everything_says_nothing() -> None:
    assert placed(dict.fromkeys(range(100_000), 0), 100_000)[0] == []


def test_what_is_listed_leaves_in_entries_of_a_bounded_size() -> None:
    # given a channel that lacks every other message, and at the end has a long stretch and one tried message
    held = dict.fromkeys([*range(0, 3 * PAGE, 2), *range(3 * PAGE, 6 * PAGE)], 0) | {6 * PAGE: 1}
    # when it is placed
    entries, _ = placed(held, 6 * PAGE + 1)
    # then all is listed, each entry from where the last one ended
    assert [message for entry in entries for message in unpack_messages(entry.unfinished)] == [
        Message(offset, attempts, READY) for offset, attempts in held.items()
    ]
    assert [entry.start for entry in entries] == [0, *(entry.cursor for entry in entries[:-1])]
    assert max(len(entry.unfinished) for entry in entries) <= 2 * 16 * PAGE
    assert len(entries) >= len(held) // (2 * PAGE)
