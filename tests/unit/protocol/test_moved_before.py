"""Which messages of a block were deferred and published before a time."""

from __future__ import annotations

import pytest

from penstock.errors import CorruptLog
from penstock.protocol.batch import KEYED, MOVED, encode, moved_before, put_record


def batch(first: int, timestamps: list[int], flags: int = 0, key: bytes = b"") -> bytes:
    payload = bytearray(31 * len(timestamps))
    at = 0
    for number, timestamp in enumerate(timestamps, first):
        at = put_record(payload, at, b"x", timestamp, number)
    return bytes(encode(first, len(timestamps), 100, payload, 7, flags=flags, key=key))


def test_only_what_was_moved_and_is_older_is_named() -> None:
    # given a batch that was published, and two that were moved, one with a key
    data = batch(5, [1, 2]) + batch(7, [10, 3, 11], MOVED) + batch(10, [4], MOVED | KEYED, b"key")
    # then those of the moved ones that are older than the time are named
    assert moved_before(data, 5, 10) == [8, 10]
    assert moved_before(data, 5, 0) == []
    assert moved_before(data, 5, 100) == [7, 8, 9, 10]
    assert moved_before(b"", 5, 100) == []


@pytest.mark.parametrize("cut", range(1, 71, 7))
def test_what_is_no_batch_is_refused(cut: int) -> None:
    data = batch(5, [1], MOVED)
    with pytest.raises(CorruptLog):
        moved_before(data[:cut], 5, 10)


def test_a_record_that_overruns_its_batch_is_refused() -> None:
    data = bytearray(batch(5, [1, 1], MOVED))
    data[40:44] = (1 << 31).to_bytes(4, "big")
    with pytest.raises(CorruptLog):
        moved_before(bytes(data), 5, 10)
