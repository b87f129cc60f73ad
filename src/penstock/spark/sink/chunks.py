"""Chunks: what is published at once, the body of a binary MPUB. Where one ends follows from the rows alone.

So a task that is run again makes the same chunks of the same rows, and nsqd knows them by their numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.spark.sink import framing

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from penstock.spark.sink.rows import Place

SMALLEST: Final = 64 << 10
OPEN: Final = 32  # chunks' worth of bytes that wait for more


class Chunk:
    """Rows of one place, up to `most` bytes; a single row may be larger."""

    __slots__ = ("_at", "_data", "_most", "count", "place")

    def __init__(self, place: Place, most: int) -> None:
        self.place = place
        self.count = 0
        self._most = most
        self._data = bytearray(min(SMALLEST, most))
        self._at = 4

    def fill(self, values: memoryview, starts: memoryview, row: int, stop: int) -> int:
        """Take rows from `row` on; the first that has no room, or `stop`."""
        while True:
            taken, self._at = framing.frame(self._data, self._at, values, starts, row, stop)
            self.count += taken - row
            row = taken
            if row == stop:
                return row
            needed = self._at + 4 + starts[row + 1] - starts[row]
            if needed > self._most and self.count:
                return row
            self._grow(needed)

    def _grow(self, needed: int) -> None:
        size = max(needed, min(4 * len(self._data), self._most))
        self._data += bytes(size - len(self._data))

    @property
    def size(self) -> int:
        return self._at

    def body(self) -> memoryview:
        """Whole; nothing is added any more."""
        self._data[:4] = self.count.to_bytes(4, "big")
        return memoryview(self._data)[: self._at]


class Chunks:
    """One task's, by place."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: dict[Place, Chunk] = {}
        self._size = 0

    def add(self, place: Place, bodies: pa.BinaryArray) -> Iterator[Chunk]:
        """The chunks that are full."""
        _, starts_buffer, values_buffer = bodies.buffers()
        values = memoryview(values_buffer or b"").cast("B")
        starts = memoryview(starts_buffer).cast("B").cast("i")
        row, stop = bodies.offset, bodies.offset + len(bodies)
        while row < stop:
            chunk = self._open.get(place)
            if chunk is None:
                chunk = self._open[place] = Chunk(place, self._most)
            before = chunk.size
            row = chunk.fill(values, starts, row, stop)
            self._size += chunk.size - before
            if row < stop:
                yield self._close(place)
        if self._size > OPEN * self._most:
            yield from self.rest()

    def _close(self, place: Place) -> Chunk:
        chunk = self._open.pop(place)
        self._size -= chunk.size
        return chunk

    def rest(self) -> Iterator[Chunk]:
        """Those that are not full, in the order in which they were begun."""
        for place in list(self._open):
            yield self._close(place)
