"""Batches that were published under a producer's key: the key's bytes, and those whose key only their file says.

    key     sequence u64 | digest size u8 | digest | producer

A producer numbers its batches, rising, so that one that comes again is known. What it published last belongs into the
journal, and not before the batch is on the device: a key without its batch would make a repeat a loss. Until the
journal has it on the device too, the batch is what says it: no index mark stands behind it, so a recovery finds it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from penstock.errors import CorruptLog
from penstock.protocol.batch import HEADER, first_at

if TYPE_CHECKING:
    from penstock.log.timetable.bucket import Bucket

_KEY = struct.Struct(">QB")
_HEAD = struct.Struct(">20xIQ")


class Key(NamedTuple):
    """What a producer says of a batch: the same sequence and digest mean the same batch."""

    producer: bytes
    sequence: int
    digest: bytes

    def pack(self) -> bytes:
        return _KEY.pack(self.sequence, len(self.digest)) + self.digest + self.producer


def unpack(key: bytes) -> Key:
    """CorruptLog for what no producer's key looks like."""
    if len(key) < _KEY.size or len(key) < _KEY.size + key[8]:
        raise CorruptLog(f"{key!r} is no producer's key")
    sequence, size = _KEY.unpack_from(key)
    return Key(key[_KEY.size + size :], sequence, key[_KEY.size : _KEY.size + size])


class Keyed(NamedTuple):
    """A batch of the log, or with `bucket` of the timetable, whose key the journal may lack."""

    first: int
    end: int
    time: int  # of the append
    key: bytes
    bucket: Bucket | None = None


def keyed(head: bytes, bucket: Bucket | None = None) -> Keyed:
    """Of what stands before a batch's payload."""
    count, time = _HEAD.unpack_from(head)
    first = first_at(head, 0)
    return Keyed(first, first + count, time, head[HEADER:], bucket)
