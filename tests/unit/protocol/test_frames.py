"""Frames: answers, errors, and messages as they are copied from whole batches."""

from __future__ import annotations

import struct
from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import CorruptLog
from penstock.protocol import frames as tested
from penstock.protocol.batch import encode_records
from penstock.protocol.frames import CLOSE_WAIT, HEARTBEAT, OK, Messages, answer, error
from tests.unit.protocol.conversation import plain

PLAIN = plain("penstock.protocol.frames")
SEED = 7
BASE = 0x3FFF_0000_0000_0000
TIME = 1_700_000_000_123_456_789
FIRST = 1000
ENOUGH = 1 << 40


def block(batches: list[list[bytes]], key: bytes = b"") -> bytes:
    """Batches of these bodies, offsets from FIRST on."""
    made, first = [], FIRST
    for bodies in batches:
        made.append(encode_records(first, BASE, bodies, TIME, SEED, key=key))
        first += len(bodies)
    return b"".join(made)


def frame(offset: int, body: bytes, attempts: int = 1) -> bytes:
    """What a client must get, packed by another hand."""
    message = struct.pack(">QH", TIME, attempts) + b"%016x" % (BASE + offset) + body
    return struct.pack(">II", len(message) + 4, 2) + message


def test_answers_and_errors_are_framed() -> None:
    assert answer(b"{}") == b"\0\0\0\6\0\0\0\0{}"
    assert error(b"E_INVALID no") == b"\0\0\0\x10\0\0\0\1E_INVALID no"
    assert OK == b"\0\0\0\6\0\0\0\0OK"
    assert CLOSE_WAIT == b"\0\0\0\x0e\0\0\0\0CLOSE_WAIT"
    assert HEARTBEAT == b"\0\0\0\x0f\0\0\0\0_heartbeat_"


# --- new ones

BATCHES = st.lists(st.lists(st.binary(max_size=300), max_size=6), max_size=5)


@given(BATCHES, st.sampled_from([b"", b"key"]), st.data())
def test_new_messages_are_framed_from_any_offset_for_as_many_as_are_wanted(
    batches: list[list[bytes]], key: bytes, data: Any
) -> None:
    # given a block of several batches
    bodies = [body for batch in batches for body in batch]
    messages = Messages(FIRST, block(batches, key))
    assert (messages.first, messages.next) == (FIRST, FIRST + len(bodies))
    # when some are taken from any offset on
    start = data.draw(st.integers(0, len(bodies)))
    count = data.draw(st.integers(0, len(bodies) + 2))
    made, given_ = messages.new(FIRST + start, count, ENOUGH)
    # then they are framed, each as its first attempt
    wanted = bodies[start : start + count]
    assert given_ == len(wanted)
    assert made == b"".join(frame(FIRST + start + number, body) for number, body in enumerate(wanted))
    assert type(made) is bytes


@pytest.mark.parametrize(
    ("most", "given_"), [(-5, 1), (0, 1), (1, 1), (135, 1), (136, 2), (203, 2), (204, 3), (ENOUGH, 3)]
)
def test_frames_stay_within_their_bytes_but_for_the_first(most: int, given_: int) -> None:
    # given three messages whose frames take 68 bytes each, when they may take so many
    messages = Messages(FIRST, block([[b"x" * 34] * 2, [b"x" * 34]]))
    made, found = messages.new(FIRST, 10, most)
    # then they are as many as fit, and one at least
    assert (found, len(made)) == (given_, given_ * 68)


@pytest.mark.parametrize("offset", [0, FIRST - 1, FIRST + 2, 2**63, 2**64 - 1])
def test_offsets_of_another_block_give_nothing(offset: int) -> None:
    messages = Messages(FIRST, block([[b"a", b"b"]]))
    assert messages.new(offset, 5, ENOUGH) == (b"", 0)
    assert messages.again(array("Q", [offset]), array("H", [1]), 0, ENOUGH) == (b"", 0)


@pytest.mark.parametrize("count", [0, -1, -(2**62)])
def test_no_messages_are_given_to_who_wants_none(count: int) -> None:
    assert Messages(FIRST, block([[b"a"]])).new(FIRST, count, ENOUGH) == (b"", 0)


# --- those that were delivered before


@given(BATCHES.filter(any), st.data())
def test_messages_are_framed_again_in_any_order_with_their_attempts(batches: list[list[bytes]], data: Any) -> None:
    # given offsets of a block in any order, some of them without attempts
    bodies = [body for batch in batches for body in batch]
    which = data.draw(st.lists(st.integers(0, len(bodies) - 1), max_size=20))
    tries = data.draw(st.lists(st.sampled_from([0, 1, 2, 255, 256, 65535]), min_size=len(which), max_size=len(which)))
    start = data.draw(st.integers(0, len(which)))
    messages = Messages(FIRST, block(batches))
    # when they are framed from one of them on
    offsets = array("Q", [FIRST + number for number in which])
    made, done = messages.again(offsets, array("H", tries), start, ENOUGH)
    # then each is there that has attempts
    assert done == len(which) - start
    assert made == b"".join(
        frame(FIRST + number, bodies[number], attempts)
        for number, attempts in list(zip(which, tries, strict=True))[start:]
        if attempts
    )


def test_what_is_framed_again_ends_before_another_block_and_within_its_bytes() -> None:
    # given offsets of which the third lies in another block
    messages = Messages(FIRST, block([[b"x" * 34] * 3]))
    offsets, attempts = array("Q", [FIRST + 2, FIRST, FIRST + 3, FIRST + 1]), array("H", [2, 2, 2, 2])
    # when they are framed, then two are
    assert messages.again(offsets, attempts, 0, ENOUGH)[1] == 2
    # and with less room one, and the other from there on
    assert messages.again(offsets, attempts, 0, 135)[1] == 1
    assert messages.again(offsets, attempts, 1, 0) == (frame(FIRST, b"x" * 34, 2), 1)
    assert messages.again(offsets, attempts, 4, ENOUGH) == (b"", 0)
    assert messages.again(offsets, attempts, 9, ENOUGH) == (b"", 0)


def test_offsets_and_attempts_go_together() -> None:
    messages = Messages(FIRST, block([[b"a"]]))
    with pytest.raises(ValueError, match="as many attempts"):
        messages.again(array("Q", [FIRST]), array("H"), 0, ENOUGH)
    with pytest.raises(ValueError, match="as many attempts"):
        messages.again(array("Q", [FIRST]), array("H", [1]), -1, ENOUGH)


# --- any kind of block, and none


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_block_may_be_any_bytes(kind: Any) -> None:
    messages = Messages(FIRST, kind(block([[b"a"], [b"b"]])))
    assert messages.new(FIRST, 2, ENOUGH) == (frame(FIRST, b"a") + frame(FIRST + 1, b"b"), 2)


def test_an_empty_block_has_no_messages() -> None:
    messages = Messages(FIRST, b"")
    assert (messages.first, messages.next, messages.new(FIRST, 1, ENOUGH)) == (FIRST, FIRST, (b"", 0))


@given(st.binary(max_size=100), st.integers(0, 200), st.sampled_from([0, 1, 29, 2**31 - 1, 2**31, 2**32 - 1]))
def test_what_is_no_block_is_an_error_and_the_same_in_both_builds(junk: bytes, place: int, size: int) -> None:
    # given batches of which some bytes are others now
    data = bytearray(block([[b"a" * 10, b"b"], [b"c"]]))
    place %= len(data) - 4
    data[place : place + 4] = struct.pack(">I", size)
    # when each build frames what it takes for messages
    outcomes = []
    for module in (tested, PLAIN):
        try:
            outcomes.append(module.Messages(FIRST, bytes(data) + junk).new(FIRST, 5, ENOUGH))
        except CorruptLog as wrong:
            outcomes.append(str(wrong))
    # then they agree
    assert outcomes[0] == outcomes[1]
