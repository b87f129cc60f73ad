"""Sizes and numbers that no honest log holds: refused, never read beyond, and the same in both builds."""

from __future__ import annotations

import importlib.util
import struct
import sys
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hot_modules
from penstock.errors import CorruptLog
from penstock.protocol import batch as tested
from penstock.protocol.batch import (
    BAD,
    HEADER,
    INCOMPLETE,
    MAGIC,
    MAX_BATCH,
    check,
    encode,
    encode_records,
    first_at,
    header,
    length_at,
    positions,
    put_framed,
    put_record,
    put_records,
    seal,
    seek,
    span,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

SEED = 0x12345678
SIZES = [0, 1, 27, 28, 100, MAX_BATCH - 13, MAX_BATCH - 12, MAX_BATCH - 11, 2**31 - 1, 2**31, 2**32 - 13, 2**32 - 1]


def load_plain() -> ModuleType:
    """The tested module once more, plain whatever the build."""
    spec = importlib.util.spec_from_file_location("plain_batch", hot_modules.source("penstock.protocol.batch"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with patch.dict(sys.modules, {"cython": None}):
        spec.loader.exec_module(module)
    return module


PLAIN = load_plain()


def with_length(batch: bytes, length: int) -> bytes:
    return batch[:4] + length.to_bytes(4, "big") + batch[8:]


GOOD = bytes(encode_records(5, 0, [b"one", b"", b"three"], 99, SEED, key=b"key", flags=1))


# --- a batch that lies about its size


@pytest.mark.parametrize("length", SIZES)
def test_a_length_that_is_not_the_batch_s_is_bad_or_incomplete_and_nothing_is_read_beyond_the_data(length: int) -> None:
    # given a batch that says another length than it has
    data = with_length(GOOD, length)
    # then it is none: too short and too long ones can never be, others may still come
    possible = HEADER - 12 + 3 <= length <= MAX_BATCH - 12
    assert length_at(data, 0) == (length + 12 if possible else BAD)
    expected = BAD if not possible or length + 12 <= len(data) else INCOMPLETE
    assert check(data, 0, SEED) == expected
    assert walk(data, 0, SEED, 5, 1 << 20) == (0, 5, -1, expected)
    # and a span does not go beyond the data
    assert span(data, 0, len(data), 1 << 40) == (length + 12 if possible and length + 12 <= len(data) else 0)


@pytest.mark.parametrize("key_size", [4, 100, len(GOOD) - HEADER + 1, 2**31 - 1, 2**31, 2**32 - 40, 2**32 - 1])
def test_a_key_larger_than_its_batch_is_bad_whatever_the_checksum_says(key_size: int) -> None:
    # given a batch whose sealed header says so
    data = bytearray(GOOD)
    seal_with_any_key_size(data, key_size)
    # then it is bad where the key would go beyond it
    assert (check(data, 0, SEED) == BAD) == (key_size > len(data) - HEADER)
    if key_size > len(data) - HEADER:
        with pytest.raises(ValueError, match="no whole batch"):
            header(data)


def seal_with_any_key_size(data: bytearray, key_size: int) -> None:
    data[36:40] = key_size.to_bytes(4, "big")
    data[8:12] = PLAIN.crc32(bytes(data[12:]), SEED).to_bytes(4, "big")


@pytest.mark.parametrize("first", [2**63, 2**64 - 3, 2**64 - 1])
def test_offsets_beyond_the_last_possible_one_are_bad_so_that_no_sum_of_them_runs_over(first: int) -> None:
    # given a batch with such an offset, its checksum right
    data = bytearray(GOOD)
    data[12:20] = first.to_bytes(8, "big")
    data[8:12] = PLAIN.crc32(bytes(data[12:]), SEED).to_bytes(4, "big")
    # then it is none
    assert check(data, 0, SEED) == BAD
    assert walk(data, 0, SEED, first, 1 << 20) == (0, first, -1, BAD)
    # and nobody writes one
    with pytest.raises(ValueError, match="no such batch"):
        encode(first, 3, 0, b"", SEED)


def test_a_batch_larger_than_the_largest_is_not_sealed() -> None:
    class Huge(bytearray):
        """No gigabyte is made for this: refused before a byte is touched."""

    with pytest.raises(ValueError, match="no such batch"):
        seal(Huge(HEADER), 0, MAX_BATCH + 1, 0, 0, 0, 0, 0, SEED)


# --- bodies that lie about theirs


@pytest.mark.parametrize("size", [4, 5, 2**31 - 1, 2**31, 2**32 - 4, 2**32 - 1])
def test_a_framed_body_that_ends_beyond_the_data_is_refused(size: int) -> None:
    framed = struct.pack(">I", size) + b"abc"
    with pytest.raises(ValueError, match="end early"):
        put_framed(bytearray(1000), 0, framed, 0, 1, 0, 0)


@pytest.mark.parametrize("count", [2, 3, 2**31 - 1, 2**31, 2**32 - 1, 2**62])
def test_more_framed_bodies_than_there_are_are_refused(count: int) -> None:
    framed = struct.pack(">I", 3) + b"abc"
    for end in range(len(framed), len(framed) + 4):
        with pytest.raises(ValueError, match="end early"):
            put_framed(bytearray(1000), 0, framed.ljust(end, b"\0"), 0, count, 0, 0)


@pytest.mark.parametrize("start", [-1, 8, 100, 2**62])
def test_framed_bodies_do_not_begin_outside_the_data(start: int) -> None:
    with pytest.raises(ValueError, match=r"end early|no room"):
        put_framed(bytearray(1000), 0, struct.pack(">I", 3) + b"abc", start, 1, 0, 0)


@pytest.mark.parametrize("at", [-1, -31, 68, 100, 2**62])
def test_nothing_is_put_outside_the_room(at: int) -> None:
    data = bytearray(100)
    with pytest.raises(ValueError, match="no room"):
        put_record(data, at, b"abc", 0, 0)
    with pytest.raises(ValueError, match="no room"):
        put_records(data, at, [b"abc"], 0, 0)
    with pytest.raises(ValueError, match="no room"):
        put_framed(data, at, b"\0\0\0\3abc", 0, 1, 0, 0)
    assert data == bytes(100)


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda at: check(GOOD, at, SEED), id="check"),
        pytest.param(lambda at: length_at(GOOD, at), id="length_at"),
        pytest.param(lambda at: walk(GOOD, at, SEED, 5, 1), id="walk"),
        pytest.param(lambda at: seek(GOOD, at, 5), id="seek"),
        pytest.param(lambda at: span(GOOD, at, len(GOOD) + 1, 5), id="span"),
        pytest.param(lambda at: first_at(GOOD, at), id="first_at"),
        pytest.param(lambda at: header(GOOD, at), id="header"),
        pytest.param(lambda at: positions(GOOD, at, len(GOOD) + 1), id="positions"),
        pytest.param(lambda at: seal(bytearray(GOOD), at, at + HEADER, 0, 0, 0, 0, 0, SEED), id="seal"),
    ],
)
@pytest.mark.parametrize("at", [-(2**62), -41, -1, len(GOOD) + 1, 2**62])
def test_nothing_is_read_or_sealed_outside_the_data(call: Callable[[int], object], at: int) -> None:
    with pytest.raises(ValueError, match=r"."):
        call(at)


# --- both builds agree


HOSTILE = st.one_of(
    st.binary(max_size=100),
    st.builds(
        lambda length, first, count, flags, key, payload: (
            MAGIC + struct.pack(">IIQIQII", length, 0, first, count, 7, flags, key) + payload
        ),
        st.sampled_from(SIZES) | st.integers(28, 80),
        st.sampled_from([0, 5, 2**63 - 1, 2**63, 2**64 - 1]),
        st.sampled_from([0, 1, 2, 2**31 - 1, 2**31, 2**32 - 1]),
        st.integers(0, 3),
        st.sampled_from([0, 0, 0, 1, 2**31 - 1, 2**31, 2**32 - 1]),
        st.binary(max_size=60),
    ),
    st.builds(
        lambda first, count, key, sizes: bytes(
            PLAIN.encode(
                first,
                count,
                7,
                b"".join(struct.pack(">I", size) + bytes(min(size, 40)) for size in sizes),
                SEED,
                flags=len(key) & 1,
                key=key,
            )
        ),
        st.sampled_from([0, 5, 2**62]),
        st.sampled_from([0, 1, 2, 2**31, 2**32 - 1]),
        st.binary(max_size=4),
        st.lists(st.sampled_from([0, 25, 26, 27, 40, 41, 2**31 - 1, 2**31, 2**32 - 4, 2**32 - 1]), max_size=4),
    ),
)


def outcome(call: Callable[[], object]) -> object:
    """What a call answers, or which error it raises."""
    try:
        answer = call()
    except (ValueError, CorruptLog) as error:
        return type(error), str(error)
    return bytes(answer) if isinstance(answer, bytearray) else answer


def every_reading(module: Any, data: bytes, at: int, offset: int, size: int) -> list[object]:
    """What each function that reads makes of the data."""
    keyed: list[int] = []
    calls: list[Callable[[], object]] = [
        lambda: module.check(data, at, SEED),
        lambda: module.length_at(data, at),
        lambda: (module.walk(data, at, SEED, offset, size, keyed), keyed),
        lambda: module.seek(data, at, offset),
        lambda: module.span(data, at, len(data), size),
        lambda: module.first_at(data, at),
        lambda: tuple(module.header(data, at)),
        lambda: list(module.positions(data, at, len(data))),
        lambda: [tuple(record) for record in module.records(data, at)],
    ]
    return [outcome(call) for call in calls]


@settings(max_examples=300)
@given(
    st.lists(HOSTILE, min_size=1, max_size=4).map(b"".join),
    st.sampled_from([0, 0, 0, 1, 40, -1]),
    st.sampled_from([0, 5, 6, 2**63 - 1, 2**63, 2**64 - 1]),
    st.sampled_from([0, 1, 60, 1 << 40]),
)
def test_both_builds_read_the_same_from_anything(data: bytes, at: int, offset: int, size: int) -> None:
    assert every_reading(tested, data, at, offset, size) == every_reading(PLAIN, data, at, offset, size)


def every_writing(module: Any, room: int, at: int, framed: bytes, start: int, count: int, number: int) -> list[object]:
    """What each function that writes leaves in a buffer, and what it answers."""
    made: list[object] = []
    for call in (
        lambda data: module.put_record(data, at, framed, number, number, number & 0xFFFF),
        lambda data: module.put_records(data, at, [framed, b"", framed], number, number),
        lambda data: module.put_framed(data, at, framed, start, count, number, number),
        lambda data: module.seal(data, at, room, number, count & 0xFFFFFFFF, number, 1, 2, SEED),
    ):
        data = bytearray(room)
        made.append((outcome(lambda call=call, data=data: call(data)), bytes(data)))  # type: ignore[misc]
    return made


@settings(max_examples=300)
@given(
    st.integers(0, 200),
    st.integers(-2, 100),
    st.lists(
        st.tuples(st.sampled_from([0, 1, 3, 2**31 - 1, 2**31, 2**32 - 1]), st.integers(0, 5)).map(
            lambda pair: struct.pack(">I", pair[0]) + bytes(pair[1])
        ),
        max_size=5,
    ).map(b"".join),
    st.integers(-2, 12),
    st.sampled_from([0, 1, 2, 3, 2**31, 2**40]),
    st.sampled_from([0, 1, 2**31, 2**62, 2**63 - 1, 2**63, 2**64 - 1]),
)
def test_both_builds_write_the_same_whatever_they_are_given(
    room: int, at: int, framed: bytes, start: int, count: int, number: int
) -> None:
    given_ = (room, at, framed, start, count, number)
    assert every_writing(tested, *given_) == every_writing(PLAIN, *given_)
