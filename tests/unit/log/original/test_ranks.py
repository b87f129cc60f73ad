"""Many messages come in an order in which each channel holds all from some place on, but for few."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import DiskFull
from penstock.log.original.merge import Unfinished, merge
from penstock.log.original.meta import Meta
from penstock.log.original.queue import Queue
from tests.kit import MemoryFiles

from .folders import FOLDER, folder, put, record

Held = dict[int, int]  # message -> attempts


def queue(files: MemoryFiles, name: str, held: Held) -> Queue:
    """Its meta file tells how many there are."""
    put(files, f"{name}.diskqueue.000000.dat", b"".join(record(n, attempts=held[n]) for n in sorted(held)))
    return Queue(files, FOLDER, name, [0], Meta(len(held), 0, 0, 0, 1), {})


def merged(channels: dict[str, Held], own: Held | None = None, *, held: int = 50) -> list[Unfinished]:
    files = folder("t", channels=list(channels))
    queues = [(channel, queue(files, f"t:{channel}", each)) for channel, each in channels.items()]
    of_topic = queue(files, "t", own) if own else None
    before = files.tree()
    found = list(merge(files, queues, of_topic, "/scratch", held, many=0))
    assert files.tree() == before
    assert files.opened() == []
    return found


def numbers(found: list[Unfinished]) -> list[int]:
    return [int(message.id, 16) for message in found]


def listed(found: list[Unfinished], channel: str) -> int:
    """How many of the channel's messages lie before the last place where it holds none, or one with attempts."""
    breaks = [at for at, message in enumerate(found) if message.attempts.get(channel, 1)]
    return sum(channel in message.attempts for message in found[: breaks[-1] + 1]) if breaks else 0


def test_one_channel_gets_what_was_tried_first_and_then_the_rest_by_time() -> None:
    # given a channel that has the newest and some other message in flight
    held = {n: int(n in (4, 9)) for n in range(10)}
    # when it is merged, then these two are in front of the others
    assert numbers(merged({"c": held})) == [4, 9, 0, 1, 2, 3, 5, 6, 7, 8]


def test_channels_that_are_behind_each_other_hold_all_from_some_place_on() -> None:
    # given three channels of which each is further than the one before, and each has some in flight at its end
    channels: dict[str, Held] = {
        "a": dict.fromkeys(range(80, 100), 0) | {98: 1},
        "b": dict.fromkeys(range(50, 100), 0) | {99: 2},
        "c": dict.fromkeys(range(100), 0) | {97: 1},
    }
    # when they are merged
    found = merged(channels)
    # then only those and what is in flight elsewhere lies apart
    assert numbers(found) == [97, 98, 99, *range(97)]
    assert {channel: listed(found, channel) for channel in channels} == {"a": 3, "b": 3, "c": 1}


def test_channels_that_took_newer_messages_first_list_only_where_they_differ() -> None:
    # given two channels that were behind, and were given newer messages from memory beside those from the disk
    rng = random.Random(1)
    channels = {name: {n: 0 for n in range(900) if n < 600 or rng.random() < 0.5} for name in "ab"}
    # when they are merged
    found = merged(channels)
    # then no more is to be listed than what one of them holds alone
    alone = len(channels["a"].keys() ^ channels["b"].keys())
    assert listed(found, "a") + listed(found, "b") <= alone


@given(
    st.dictionaries(st.sampled_from("abcd"), st.dictionaries(st.integers(0, 40), st.integers(0, 2)), min_size=1),
    st.dictionaries(st.integers(0, 40), st.just(0), max_size=5),
    st.integers(1, 50),
)
def test_no_order_changes_what_is_there(channels: dict[str, Held], own: Held, held: int) -> None:
    # given any queues, when they are merged as many are
    found = merged(channels, own, held=held)
    # then each message is there once, with all who hold it
    expected = {
        n: {c: each[n] for c, each in channels.items() if n in each} for each in channels.values() for n in each
    }
    assert {int(message.id, 16): message.attempts for message in found} == {
        n: attempts for n, attempts in expected.items() if n not in own
    }
    assert len(found) == len(set(numbers(found)))
    assert all(message.body == b"body of %d" % int(message.id, 16) for message in found)


def test_a_message_twice_in_every_channel_is_one() -> None:
    # given channels with two queues each, as of folders put together
    files = folder("t", channels=["a", "b"])
    queues = [(c, queue(files, f"t{s}{c}", {1: 0, 2: 0})) for c in "ab" for s in ":;"]
    # when they are merged
    found = list(merge(files, queues, None, "/scratch", many=0))
    # then each message is there once
    assert [(message.id[-1:], message.attempts) for message in found] == [
        (b"1", {"a": 0, "b": 0}),
        (b"2", {"a": 0, "b": 0}),
    ]


@pytest.mark.parametrize("room", range(0, 10_000, 500))
def test_a_disk_that_is_full_at_any_time_leaves_nothing_behind(room: int) -> None:
    files = folder("t")
    entries = queue(files, "t:c", dict.fromkeys(range(100), 0))
    files.capacity = sum(len(data or b"") for data in files.tree().values()) + room
    before = files.tree()
    try:
        found = list(merge(files, [("c", entries)], None, "/scratch", 10, many=0))
    except DiskFull:
        assert room < 100 * 48 * 2
    else:
        assert len(found) == 100
    assert files.tree() == before
    assert files.opened() == []
