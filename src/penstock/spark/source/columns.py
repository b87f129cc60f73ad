"""From records to Arrow: the columns that a query asked for, in its order. Knows no network.

With the extension, records are copied into the columns' buffers by C. Without it, one loop notes where each record's
id and body lie, and Arrow gathers them; a Python that copied them itself would take twice as long.
"""

from __future__ import annotations

import struct
from array import array
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import CorruptLog
from penstock.protocol.batch import RECORD, header, positions
from penstock.spark.source import decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.spark.source.fetching import Chunk
    from penstock.spark.source.offsets import Place

    Parse = Callable[[pa.Array], pa.Array]

TIME: Final = pa.timestamp("us", tz="UTC")
_HEAD: Final = struct.Struct(">IQ")


class Columns:
    """`schema` is what Spark expects to be given; `parse` makes of bodies what its column `body` holds."""

    def __init__(self, schema: pa.Schema, parse: Parse | None = None) -> None:
        self._schema = schema
        self._parse = parse
        self._body_type = pa.binary() if parse or "body" not in schema.names else schema.field("body").type
        self._same: dict[str, pa.Array] = {}  # columns whose value is the same in all rows, as long as were needed

    def batch(self, place: Place, chunk: Chunk, first: int, until: int) -> pa.RecordBatch:
        """The records of the chunk whose offsets lie in `[first, until)`."""
        low, high = max(first, chunk.first), min(until, chunk.next)
        found = self._decoded(chunk, low, high)
        found["offset"] = lambda: pc.add(_counting(_rounded(high - low)).slice(0, high - low), low)
        found["topic"] = lambda: self._repeated(place.topic, high - low)
        found["node"] = lambda: self._repeated(place.node, high - low)
        return pa.RecordBatch.from_arrays([found[name]() for name in self._schema.names], schema=self._schema)

    def _repeated(self, value: str, count: int) -> pa.Array:
        known = self._same.get(value)
        if known is None or len(known) < count:
            known = self._same[value] = pa.repeat(pa.scalar(value, pa.string()), count)
        return known.slice(0, count)

    def _decoded(self, chunk: Chunk, low: int, high: int) -> dict[str, Callable[[], pa.Array]]:
        low, high = low - chunk.first, high - chunk.first
        make = _Compiled if decode.COMPILED else _Plain
        rows = make(chunk, low, high)
        parse = self._parse or (lambda bodies: bodies)
        return {"id": rows.ids, "timestamp": rows.times, "body": lambda: parse(rows.bodies(self._body_type))}


class _Compiled:
    """The records `[low, high)` of a chunk, by C."""

    def __init__(self, chunk: Chunk, low: int, high: int) -> None:
        self._data = chunk.data
        self._places = positions(chunk.data, 0, chunk.end)
        self._span = low, high
        self._count = high - low

    def bodies(self, kind: pa.DataType) -> pa.Array:
        values = pa.allocate_buffer(len(self._data))
        starts = pa.allocate_buffer(4 * (self._count + 1))
        filled = decode.bodies(self._data, self._places, *self._span, _view(values, "B"), _view(starts, "i"))
        return pa.Array.from_buffers(kind, self._count, [None, starts, values.slice(0, filled)])

    def ids(self) -> pa.Array:
        values = pa.allocate_buffer(16 * self._count)
        decode.ids(self._data, self._places, *self._span, _view(values, "B"))
        return pa.Array.from_buffers(pa.string(), self._count, [None, _sixteens(_rounded(self._count)), values])

    def times(self) -> pa.Array:
        values = pa.allocate_buffer(8 * self._count)
        decode.times(self._data, self._places, *self._span, _view(values, "q"))
        return pa.Array.from_buffers(TIME, self._count, [None, values])


class _Plain:
    """The same by Arrow: all that the chunk holds as one array of binaries, of which every third is a body."""

    def __init__(self, chunk: Chunk, low: int, high: int) -> None:
        self._data = chunk.data
        self._places = array("i")  # of id, body and next record
        self._times = array("q")
        self._numbers = range(low, high)
        for at, end in _payloads(chunk):
            self._note(at, end)

    def _note(self, at: int, end: int) -> None:
        unpack, place, time = _HEAD.unpack_from, self._places.append, self._times.append
        while at < end:
            size, timestamp = unpack(self._data, at)
            if size < RECORD - 4 or size > end - at - 4:
                raise CorruptLog("a record is not what its size says")
            place(at + 14)
            place(at + RECORD)
            at += size + 4
            place(at)
            time(timestamp // 1000)

    def _taken(self, kind: pa.DataType, which: int) -> pa.Array:
        buffers = [None, pa.py_buffer(self._places), pa.py_buffer(self._data)]
        all_of_it = pa.Array.from_buffers(kind, len(self._places) - 1, buffers)
        return all_of_it.take(pa.array([3 * number + which for number in self._numbers], pa.int32()))

    def bodies(self, kind: pa.DataType) -> pa.Array:
        return self._taken(kind, 1)

    def ids(self) -> pa.Array:
        return self._taken(pa.string(), 0)

    def times(self) -> pa.Array:
        low, high = self._numbers.start, self._numbers.stop
        return pa.Array.from_buffers(TIME, high - low, [None, pa.py_buffer(self._times[low:high])])


def _payloads(chunk: Chunk) -> Iterator[tuple[int, int]]:
    """Where the records of each batch begin and end."""
    at = 0
    while at < chunk.end:
        found = header(chunk.data, at)
        yield found.payload, found.end
        at = found.end


def _view(buffer: pa.Buffer, kind: Literal["B", "i", "q"]) -> memoryview:
    return memoryview(buffer).cast(kind)


def _rounded(count: int) -> int:
    """So that few different ones are kept."""
    return -(-count // 8192) * 8192


@lru_cache(16)
def _counting(count: int) -> pa.Array:
    return pa.array(range(count), pa.int64())


@lru_cache(16)
def _sixteens(count: int) -> pa.Buffer:
    """Where strings of 16 bytes begin and end."""
    return pa.py_buffer(array("i", range(0, 16 * count + 1, 16)))
