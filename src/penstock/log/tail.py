# cython: annotation_typing=False
"""The end of a log in memory: the batch that is being made, and behind it the last ones written. Knows no file.

    chunk    | written | written | batch being made ...  | free
                                 ^ used                  ^ fill

Records are encoded where they will be read from: nothing is copied between a publish and its delivery. Written bytes
never change again, so blocks of them may be handed out; when a chunk is full, the next one is begun.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.log.segment import Block
from penstock.protocol.batch import (
    HEADER,
    MAX_BATCH,
    RECORD,
    first_at,
    put_framed,
    put_moved,
    put_records,
    seal,
    seek,
    size_of,
    span,
)

try:
    import cython
except ImportError:  # a plain build has no need of Cython
    from penstock import plain as cython  # type: ignore[no-redef]
if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_FromStringAndSize

if TYPE_CHECKING:
    from array import array
    from collections.abc import Sequence

    from typing_extensions import Buffer

SMALLEST: Final = 4 << 10
LARGEST: Final = 256 << 10  # of what is kept; a batch may be larger and is then not kept
PAYLOAD: Final = MAX_BATCH - HEADER - (64 << 10)  # bytes of records that one batch can hold; the rest is for a key


class Tail:
    """A bounded piece of the log's end; empty until something is put, and again after `release`."""

    __slots__ = ("_before", "_chunk", "_fill", "_hint", "_hint_at", "_used", "count", "end", "first")

    def __init__(self, end: int) -> None:
        self.first = end  # the offset of the first record in the chunk
        self.end = end  # the offset behind the last one written
        self.count = 0  # records in the batch being made
        self._chunk = bytearray()
        self._used = self._fill = 0
        self._before: Block | None = None  # the chunk before this one
        self._hint = end  # readers mostly go on where the last one stopped
        self._hint_at = 0

    def put(self, bodies: Sequence[bytes], timestamp: int, base: int) -> None:
        """Add a record for each body to the batch being made."""
        at = self._room(size_of(bodies))
        self._fill = put_records(self._chunk, at, bodies, timestamp, base + self.end + self.count)
        self.count += len(bodies)

    def put_framed(
        self, data: Buffer, start: int, stop: int, count: int, timestamp: int, base: int, skip: int = 0
    ) -> None:
        """As `put`, for `count` bodies that fill `data[start:stop]`, each behind `skip` bytes and its size."""
        at = self._room(stop - start + (RECORD - 4 - skip) * count)
        self._fill = put_framed(self._chunk, at, data, start, count, timestamp, base + self.end + self.count, skip)
        self.count += count

    def put_moved(self, source: Buffer, places: array[int], size: int, base: int) -> None:
        """Add the records that begin at `places` in `source` and take `size` bytes, under new ids."""
        at = self._room(size)
        self._fill = put_moved(self._chunk, at, source, places, base + self.end + self.count)
        self.count += len(places)

    def put_payload(self, payload: bytes, count: int) -> None:
        """Add records that are encoded already."""
        at = self._room(len(payload))
        self._chunk[at : at + len(payload)] = payload
        self._fill = at + len(payload)
        self.count += count

    @property
    def pending(self) -> int:
        """Bytes of the records in the batch being made."""
        return self._fill - self._used - HEADER if self._fill > self._used else 0

    def _room(self, size: int) -> int:
        """Where the next record goes; from there on there is room for `size` bytes."""
        at = self._fill if self._fill > self._used else self._used + HEADER
        if at + size > len(self._chunk):
            at = self._begin_chunk(at - self._used, size)
        return at

    def _begin_chunk(self, made: int, size: int) -> int:
        """A new chunk, to which the `made` bytes of the batch being made move."""
        old = self._chunk
        needed = made + size
        if made > HEADER and needed > LARGEST:
            needed += made  # a large batch of many puts is not moved at each of them
        self._chunk = _room_for(max(needed, min(LARGEST, max(SMALLEST, 2 * len(old)))))
        if self._fill > self._used:
            self._chunk[:made] = old[self._used : self._fill]
            self._fill = made
        if self._used:
            self._before = Block(self.first, self.end, memoryview(old)[: self._used])
        self._used = 0
        self.first = self._hint = self.end
        self._hint_at = 0
        return made

    def seal(self, appended: int, seed: int, *, flags: int = 0, key: bytes = b"") -> memoryview:
        """The batch that was made, whole; it is nobody's until `written` or `abandoned`."""
        if key:
            self._insert(key)
        seal(self._chunk, self._used, self._fill, self.end, self.count, appended, flags, len(key), seed)
        return memoryview(self._chunk)[self._used : self._fill]

    def _insert(self, key: bytes) -> None:
        """Move the records of the batch being made to let the key stand before them; rare, and in memory."""
        start = self._used + HEADER
        records = bytes(memoryview(self._chunk)[start : self._fill])
        self._fill = 0
        start = self._room(len(key) + len(records))
        self._fill = start + len(key) + len(records)
        self._chunk[start : self._fill] = key + records

    def written(self) -> None:
        """The batch is part of the log."""
        self._used = self._fill
        self.end += self.count
        self.count = 0
        self._fill = 0
        if len(self._chunk) > LARGEST:
            self.release()

    def detach(self) -> None:
        """A thread writes the batch that was sealed: what is put from now on goes behind it.

        Where that fails, `release` to its beginning, and the batch that is being made is gone too.
        """
        self.end += self.count
        self.release()
        self.count = 0

    def abandoned(self) -> None:
        """The batch never was."""
        self.count = 0
        self._fill = 0
        if len(self._chunk) > LARGEST:  # it was made for that batch alone
            self._chunk = bytearray()

    def release(self, end: int | None = None) -> None:
        """Let go of the memory; with `end`, go on at that offset."""
        if end is not None:
            self.end = end
        self._chunk = bytearray()
        self._used = self._fill = 0
        self._before = None
        self.first = self._hint = self.end
        self._hint_at = 0

    def drop(self, offset: int) -> None:
        """What lies below, where a batch begins, is not here any more."""
        if self._before is not None and self._before.first < offset:
            self._before = None
        self.first = max(self.first, min(offset, self.end))

    @property
    def size(self) -> int:
        return len(self._chunk) + (memoryview(self._before.data).nbytes if self._before else 0)

    def read(self, offset: int, size: int) -> Block | None:
        """Whole batches from the one that holds `offset`, when it is here; about `size` bytes, one at least."""
        if offset < self.first:
            return self._read_before(offset, size)
        if offset >= self.end:
            return None
        at = self._hint_at if offset == self._hint else seek(self._chunk, 0, offset)
        return self._block(self._chunk, at, self._used, size, self.end)

    def _read_before(self, offset: int, size: int) -> Block | None:
        before = self._before
        if before is None or offset < before.first:
            return None
        return self._block(before.data, seek(before.data, 0, offset), len(before.data), size, before.next)

    def _block(self, data: bytes | bytearray | memoryview, at: int, used: int, size: int, end: int) -> Block:
        stop = used if used - at <= size else span(data, at, used, size)
        next_ = end if stop == used else first_at(data, stop)
        if data is self._chunk:
            self._hint, self._hint_at = next_, stop
        return Block(first_at(data, at), next_, memoryview(data)[at:stop])


def _room_for(size: int) -> bytearray:
    """So many bytes, of whatever; only what is written is read."""
    return PyByteArray_FromStringAndSize(cython.NULL, size) if cython.compiled else bytearray(size)
