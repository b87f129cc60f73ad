"""Where bytes are received: nothing is lost or copied again and again, and nobody gets memory for an announcement."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.protocol.inbox import SHARED, Inbox

if TYPE_CHECKING:
    from collections.abc import Callable

KIB = 1 << 10


def receive(inbox: Inbox, data: bytes) -> int:
    """One read; how many of the bytes there was room for."""
    room = memoryview(inbox.room())
    size = min(len(room), len(data))
    room[:size] = data[:size]
    inbox.received(size)
    return size


def memory(inbox: Inbox) -> int:
    """What a connection holds for itself, in bytes."""
    return len(inbox._own or b"") + len(inbox._rest)


def test_what_is_whole_leaves_nothing_behind() -> None:
    shared = bytearray(KIB)
    inbox = Inbox(shared)
    assert inbox.room() is shared
    receive(inbox, b"whole")
    assert (inbox.data is shared, bytes(inbox.data[: inbox.end])) == (True, b"whole")
    inbox.keep(5, 0)
    assert (inbox.room() is shared, memory(inbox)) == (True, 0)


def test_connections_share_a_buffer_and_keep_their_own_rests() -> None:
    # given two connections of which each has half a command
    shared = bytearray(KIB)
    inboxes = [Inbox(shared), Inbox(shared)]
    for inbox, said in zip(inboxes, [b"one, on", b"two, tw"], strict=True):
        receive(inbox, said)
        inbox.keep(5, 3)
    # when the other halves come, each after a read that brought nothing
    heard = []
    for inbox, said in zip(inboxes, [b"e", b"o"], strict=True):
        inbox.room()
        receive(inbox, said)
        heard.append(bytes(inbox.data[: inbox.end]))
    # then nothing is mixed up
    assert heard == [b"one", b"two"]


def test_a_read_of_nothing_changes_nothing() -> None:
    inbox = Inbox(bytearray(KIB))
    receive(inbox, b"half")
    inbox.keep(1, 10)
    receive(inbox, b"")
    inbox.keep(0, 10)
    receive(inbox, b"!")
    assert bytes(inbox.data[: inbox.end]) == b"alf!"


@given(
    st.lists(st.integers(1, 20_000), min_size=1, max_size=12),
    st.lists(st.integers(1, 9000), min_size=1, max_size=20),
    st.sampled_from([64, 1000, 16 * KIB]),
    st.sampled_from(["the truth", "too little", "too much"]),
)
def test_every_command_is_whole_in_the_end_whatever_is_said_of_its_size(
    sizes: list[int], reads: list[int], shared: int, told: str
) -> None:
    # given commands of these sizes, each behind its size, and reads of others
    stream = b"".join(struct.pack(">I", size) + bytes([size % 251]) * size for size in sizes)
    needs: Callable[[int, int], int] = {
        "the truth": lambda size, here: size,
        "too little": lambda size, here: here + 1,
        "too much": lambda size, here: size + (5 << 20),
    }[told]
    inbox, heard, turn = Inbox(bytearray(shared)), [], 0
    # when the stream comes
    while stream:
        stream = stream[receive(inbox, stream[: reads[turn % len(reads)]]) :]
        turn += 1
        at, needed = 0, 0
        while (here := inbox.end - at) > 0:
            size = 4 + struct.unpack_from(">I", inbox.data, at)[0] if here >= 4 else 4
            if here < 4 or here < size:
                needed = needs(size, here)
                break
            heard.append(bytes(inbox.data[at + 4 : at + size]))
            at += size
        left = inbox.end - at
        inbox.keep(at, needed)
        # then there is always room for more, and memory for little more than what has come
        assert len(memoryview(inbox.room())) > 0
        assert memory(inbox) <= 2 * left + 8 * KIB
    # and every command is heard, and nothing kept
    assert heard == [bytes([size % 251]) * size for size in sizes]
    assert memory(inbox) == 0


@pytest.mark.parametrize("read", [1 << 16, 1 << 20])
@pytest.mark.parametrize("lie", [0, 1 << 30])
def test_a_large_command_is_copied_a_few_times_and_no_more(read: int, lie: int) -> None:
    # given 5 MiB of one command
    command = memoryview(bytes(5 << 20))
    inbox = Inbox(bytearray(SHARED))
    buffers = set()
    # when it comes in reads, and its size is told, or something else
    at = turns = 0
    while at < len(command):
        at += receive(inbox, bytes(command[at : at + read]))
        inbox.keep(0, lie or at + 4)
        buffers.add(id(inbox._own))
        turns += 1
    # then it moves to a larger buffer now and then, each a quarter larger at least
    assert turns < 200
    assert len(buffers) < 25
    assert memory(inbox) <= 10 << 20


def test_a_command_that_was_only_announced_gets_no_memory() -> None:
    inbox = Inbox(bytearray(SHARED))
    receive(inbox, b"PUB t\n\x00\x50\x00\x00")
    inbox.keep(0, 5 << 20)
    assert memory(inbox) == 10


def test_a_buffer_of_ones_own_goes_with_its_command() -> None:
    # given a connection with a large command that is whole now, and the beginning of the next
    inbox = Inbox(bytearray(16 * KIB))
    receive(inbox, b"x" * 16 * KIB)
    inbox.keep(0, 20 * KIB)
    assert receive(inbox, b"x" * 4 * KIB + b"next") == 4 * KIB + 4
    assert inbox.data is inbox._own
    # when it is taken
    inbox.keep(20 * KIB, 10)
    # then the buffer is gone, and the beginning is not
    assert memory(inbox) == 4
    receive(inbox, b" one")
    assert bytes(inbox.data[: inbox.end]) == b"next one"
