"""Channels' queues become one sequence in which each message is once, with all who still have to finish it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import DiskFull
from penstock.log.original.merge import Unfinished, merge
from penstock.log.original.queue import Queue

from .folders import FOLDER, START, folder, put, record

if TYPE_CHECKING:
    from tests.kit import MemoryFiles

# of each record: which message, how many attempts; the message's time has to be the same everywhere
QUEUE = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 65535)), max_size=40)


def time(n: int) -> int:
    return START + n // 3  # several messages of one moment


def queue(files: MemoryFiles, name: str, entries: list[tuple[int, int]]) -> Queue:
    """A queue of two files."""
    half = len(entries) // 2
    for number, part in enumerate((entries[:half], entries[half:])):
        content = b"".join(record(n, attempts=attempts, time=time(n)) for n, attempts in part)
        put(files, f"{name}.diskqueue.{number:06d}.dat", content)
    return Queue(files, FOLDER, name, [0, 1], None, {})


@given(st.dictionaries(st.sampled_from("abcdef"), QUEUE), st.lists(st.integers(0, 40), max_size=5), st.integers(1, 50))
def test_each_message_comes_once_in_order_with_its_channels_and_most_attempts(
    channels: dict[str, list[tuple[int, int]]], own: list[int], held: int
) -> None:
    # given channels' queues in any order, with messages twice, and what the topic holds itself
    files = folder("t", channels=list(channels))
    queues = [(channel, queue(files, f"t:{channel}", entries)) for channel, entries in channels.items()]
    of_topic = queue(files, "t", [(n, 0) for n in own])
    before = files.tree()
    # when they are merged with little memory
    found = list(merge(files, queues, of_topic, "/scratch", held))
    # then it is as a table in memory would have it
    expected: dict[int, dict[str, int]] = {}
    for channel, entries in channels.items():
        for n, attempts in entries:
            of_message = expected.setdefault(n, {})
            of_message[channel] = max(attempts, of_message.get(channel, 0))
    assert found == [
        Unfinished(time(n), b"%016x" % n, b"body of %d" % n, expected[n]) for n in sorted(expected) if n not in own
    ]
    # and nothing is left behind or changed
    assert files.tree() == before
    assert files.opened() == []


def test_two_queues_of_one_channel_are_one() -> None:
    # given a channel's queue as Linux and as Windows names it
    files = folder("t", channels=["c"])
    queues = [("c", queue(files, "t:c", [(1, 5), (2, 0)])), ("c", queue(files, "t;c", [(1, 3), (3, 0)]))]
    # when they are merged
    found = list(merge(files, queues, None, "/scratch"))
    # then each message is once
    assert [(message.id[-1:], message.attempts) for message in found] == [
        (b"1", {"c": 5}),
        (b"2", {"c": 0}),
        (b"3", {"c": 0}),
    ]


def test_a_topic_without_channels_has_nothing_unfinished() -> None:
    files = folder("t")
    assert list(merge(files, [], queue(files, "t", [(1, 0)]), "/scratch")) == []


def test_a_merge_that_is_given_up_leaves_nothing_behind() -> None:
    # given a merge of more than memory holds
    files = folder("t")
    merging = merge(files, [("c", queue(files, "t:c", [(n, 0) for n in range(100)]))], None, "/scratch", 10)
    # when it is left after its first message
    next(merging)
    assert files.exists("/scratch.runs")
    merging.close()
    # then its file is gone
    assert not files.exists("/scratch.runs")
    assert files.opened() == []


def test_a_full_disk_is_a_typed_error_and_leaves_nothing_behind() -> None:
    # given a disk with no room for the runs
    files = folder("t")
    entries = queue(files, "t:c", [(n, 0) for n in range(100)])
    files.capacity = sum(len(data or b"") for data in files.tree().values()) + 100
    # when a merge needs some
    with pytest.raises(DiskFull, match="writing /scratch"):
        list(merge(files, [("c", entries)], None, "/scratch", 10))
    # then it is all given back
    assert not files.exists("/scratch.runs")
    assert files.opened() == []
