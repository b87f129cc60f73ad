"""The sparse index of a segment: where to begin to look. Holds no truth: the segment can always say it again.

    entry   crc u32 | kind u32 | u64 | u64 | u64          32 bytes, big-endian, the crc over the rest

    MARK    offset | append time | position     the batch that begins with `offset` begins (or will) at `position`
    GAP     first lost | next good | position   bad bytes begin at `position`; the MARK behind it says where they end
    SEAL    end offset | last append time | end position      the segment is closed
    END     the same                                          it went so far once, and recovery begins before that

A MARK is written to the file only when all before its position is flushed to the device; so the last one in the file
is where recovery begins. Marks that are not yet in the file live in memory.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from typing import Final, NamedTuple

from zlib_ng.zlib_ng import crc32

from penstock.protocol.batch import MAX_ID

MARK: Final = 1
GAP: Final = 2
SEAL: Final = 3
END: Final = 4

STEP: Final = 64 * 1024  # bytes of segment from one mark to the next

_ENTRY: Final = struct.Struct(">IIQQQ")
ENTRY: Final = _ENTRY.size


class Mark(NamedTuple):
    offset: int
    time: int
    position: int


class Gap(NamedTuple):
    """Bad bytes `[position, stop)` between good batches, and the offsets they took with them."""

    first: int
    next: int
    position: int
    stop: int


def seed_of_index(first: int, seed: int) -> int:
    """What the CRCs of the entries begin with, for the segment that begins with `first`."""
    return (seed ^ first ^ 0x5EED) & 0xFFFFFFFF


def encode_entry(kind: int, one: int, two: int, three: int, seed: int) -> bytes:
    entry = _ENTRY.pack(0, kind, one, two, three)
    return crc32(entry[4:], seed).to_bytes(4, "big") + entry[4:]


class Index:
    """Marks of one segment in memory, in order of offset, time and position alike."""

    __slots__ = ("gaps", "offsets", "positions", "reach", "sealed", "times", "written")

    def __init__(self) -> None:
        self.offsets = array("Q")
        self.times = array("Q")
        self.positions = array("Q")
        self.gaps: list[Gap] = []
        self.sealed: Mark | None = None
        self.written = 0  # how many marks stand in the file
        self.reach = 0  # the offset up to which the segment once went, where its file ends before that

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, offset: int, time: int, position: int) -> None:
        self.offsets.append(offset)
        self.times.append(time)
        self.positions.append(position)

    def at(self, number: int) -> Mark:
        return Mark(self.offsets[number], self.times[number], self.positions[number])

    def last(self) -> Mark | None:
        return self.at(-1) if self.offsets else None

    def before_offset(self, offset: int) -> Mark | None:
        """The last mark at or below `offset`."""
        number = bisect_right(self.offsets, offset) - 1
        return self.at(number) if number >= 0 else None

    def before_position(self, position: int) -> Mark | None:
        """The last mark at or below `position`."""
        number = bisect_right(self.positions, position) - 1
        return self.at(number) if number >= 0 else None

    def before_time(self, time: int) -> Mark | None:
        """The last mark with an append time below `time`."""
        number = bisect_left(self.times, time) - 1
        return self.at(number) if number >= 0 else None

    def cut(self, position: int) -> None:
        """Forget what lies behind `position`."""
        keep = bisect_right(self.positions, position)
        del self.offsets[keep:], self.times[keep:], self.positions[keep:]
        self.gaps = [gap for gap in self.gaps if gap.stop <= position]
        self.written = min(self.written, keep)
        self.sealed = None

    def behind(self, position: int) -> Index:
        """Of a file that begins there."""
        index = Index()
        for offset, time, at in zip(self.offsets, self.times, self.positions, strict=True):
            if at >= position:
                index.add(offset, time, at - position)
        moved = (gap._replace(position=gap.position - position, stop=gap.stop - position) for gap in self.gaps)
        index.gaps = [gap for gap in moved if gap.position >= 0]
        return index

    def gap_at(self, position: int) -> Gap | None:
        return next((gap for gap in self.gaps if gap.position == position), None)

    def unwritten(self, position: int, seed: int, until: int = MAX_ID) -> bytes:
        """The entries for marks up to `position`, and to the offset `until`, that the file lacks.

        They count as written from now on.
        """
        entries = []
        while self.written < len(self) and self.positions[self.written] <= position:
            if self.offsets[self.written] > until:
                break
            mark = self.at(self.written)
            entries += [
                encode_entry(GAP, gap.first, gap.next, gap.position, seed)
                for gap in self.gaps
                if gap.stop == mark.position
            ]
            entries.append(encode_entry(MARK, *mark, seed))
            self.written += 1
        return b"".join(entries)


def decode(data: bytes, first: int, seed: int, size: int) -> tuple[Index, int]:
    """The index of a segment of `size` bytes, as far as its file can be believed, and how many bytes that is."""
    index = Index()
    gap: tuple[int, int, int] | None = None
    believed = 0
    offset, time, position = first, 0, 0
    for at in range(0, len(data) - ENTRY + 1, ENTRY):
        crc, kind, *values = _ENTRY.unpack_from(data, at)
        one, two, three = values
        if crc != crc32(data[at + 4 : at + ENTRY], seed) or one < offset or three < position:
            break
        if three > size:
            index.reach = offset = one
            position = three
            continue
        if kind == END and gap is None:
            believed = at + ENTRY
            continue
        if kind == GAP and gap is None and two >= one:
            gap = (one, two, three)
            offset, position = two, three
            continue
        if two < time or (kind != MARK and (kind != SEAL or gap)):
            break
        if kind == SEAL:
            index.sealed = Mark(one, two, three)
            believed = at + ENTRY
            break
        if gap:
            index.gaps.append(Gap(*gap, three))
            gap = None
        index.add(one, two, three)
        offset, time, position = one, two, three
        believed = at + ENTRY
    index.written = len(index)
    return index, believed
