"""The records of the original, in a window of bytes. Knows bytes; knows no file.

    record  size u32 | timestamp i64 | attempts u16 | id, 16 hex digits | body          size counts what follows it

Records stand one behind the other with no checksum. What makes one believable is its size, the sign of its timestamp
and its id, and that another one or the end of the file follows: a size that is wrong leads elsewhere.
"""

from __future__ import annotations

import struct
from typing import Final

from penstock.protocol.batch import HEADER, MAX_BATCH, RECORD

SMALLEST: Final = RECORD - 4  # what the size of an empty body's record says
LARGEST: Final = MAX_BATCH - HEADER - 4  # and of the largest that one of our batches can hold

HEAD: Final = struct.Struct(">IqH16s")
_HEX: Final = b"0123456789abcdef"

Place = tuple[int, int, int, int, bytes]  # where it begins in the window, size, timestamp, attempts, id


def walk(data: bytes, final: bool) -> tuple[list[Place], int, bool]:
    """The records from the beginning of `data` behind which another begins; where they end; whether one is bad there.

    `final` tells that the file ends with `data`: then the last record has to end there.
    """
    found: list[Place] = []
    add = found.append
    unpack = HEAD.unpack_from
    at = 0
    end = len(data)
    bad = False
    while end - at >= RECORD:
        size, timestamp, attempts, id_ = unpack(data, at)
        if size < SMALLEST or size > LARGEST or timestamp < 0 or id_.strip(_HEX):
            bad = True
            break
        after = at + 4 + size
        if after > end:
            break
        add((at, size, timestamp, attempts, id_))
        at = after
    if found and (bad or final or end - at < RECORD) and not (final and at == end):
        at = found.pop()[0]  # nothing is known to follow it
    return found, at, bad


def believable_size(head: bytes) -> int:
    """What the size of the record says whose first bytes these are; 0 where they cannot be those of a record."""
    if len(head) < RECORD:
        return 0
    size, timestamp, _, id_ = HEAD.unpack_from(head)
    return int(size) if SMALLEST <= size <= LARGEST and timestamp >= 0 and not id_.strip(_HEX) else 0
