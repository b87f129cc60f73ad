"""From Arrow batches to bodies that belong together: bad rows set apart, and what goes elsewhere or later. No network.

A row is bad where its body is null, empty or too large, its topic no name of one, its delay none that a node takes.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import SparkError
from penstock.protocol.names import is_valid
from penstock.spark.sink.json_rows import json_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.spark.sink.layout import Layout
    from penstock.spark.sink.options import SinkOptions

GRAIN: Final = 100_000  # us: times at which rows are due are rounded up to this, so that chunks are no single rows
SHOWN: Final = 4096  # bytes of a bad row's body that its dead letter has


class Place(NamedTuple):
    """Where rows go together: what is published at once has one topic, one node, one delay."""

    topic: str
    node: int  # -1: any
    delay: int = 0  # ms
    due: int = 0  # ns; 0: by the delay


class Limits(NamedTuple):
    """Of all nodes together."""

    message: int = 1 << 20  # bytes
    delay: int = 3600 * 1000  # ms
    publish: int = 5 << 20  # bytes of messages and their sizes


class Rows:
    """What one task publishes."""

    def __init__(
        self,
        layout: Layout,
        options: SinkOptions,
        nodes: int,
        limits: Limits,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._layout = layout
        self._options = options
        self._nodes = nodes
        self._limits = limits
        self._clock = clock
        self._row = 0  # the number of the batch's first row in the partition
        self.bad: Counter[str] = Counter()  # by reason

    def split(self, batch: pa.RecordBatch) -> Iterator[tuple[Place, pa.BinaryArray]]:
        """The bodies of the batch by place, in their order."""
        bodies = self._bodies(batch)
        bad = self._bad(batch, bodies)
        if bad:
            yield from self._apart(batch, bodies, bad)
            kept = pa.array(sorted(set(range(len(batch))) - bad.keys()), pa.int64())
            batch, bodies = batch.take(kept), bodies.take(kept)
        self._row += len(batch) + len(bad)
        if len(batch):
            yield from self._by_place(batch, bodies)

    def _bodies(self, batch: pa.RecordBatch) -> pa.BinaryArray:
        if self._layout.json:
            return json_rows(batch.select(list(self._layout.json)))
        return batch.column(self._layout.body).cast(pa.binary())

    # --- bad rows

    def _bad(self, batch: pa.RecordBatch, bodies: pa.BinaryArray) -> dict[int, str]:
        """Why each bad row is one, by its number; cheap where there is none."""
        found: dict[int, str] = {}
        layout, limits = self._layout, self._limits
        if layout.defer:
            delays = self._delays(batch)
            least = pc.fill_null(pc.and_(pc.less(delays, 0), not layout.at_time), False)
            _note(found, least, "its delay is below 0")
            _note(found, pc.fill_null(pc.greater(delays, limits.delay), False), f"its delay is above {limits.delay} ms")
        if layout.topic:
            encoded = pc.dictionary_encode(batch.column(layout.topic))
            names = [name is not None and is_valid(name) for name in encoded.dictionary.to_pylist()]
            good = pc.fill_null(pa.array(names, pa.bool_()).take(encoded.indices), False)
            _note(found, pc.invert(good), "its topic is null or no name of a topic")
        sizes = pc.binary_length(bodies)
        span = pc.min_max(sizes).as_py()
        if bodies.null_count:
            _note(found, pc.is_null(bodies), "its body is null")
        if span["min"] == 0:
            _note(found, pc.fill_null(pc.equal(sizes, 0), False), "its body is empty")
        if (span["max"] or 0) > limits.message:
            _note(
                found,
                pc.fill_null(pc.greater(sizes, limits.message), False),
                f"its body is above {limits.message} bytes",
            )
        return found

    def _apart(
        self, batch: pa.RecordBatch, bodies: pa.BinaryArray, bad: dict[int, str]
    ) -> Iterator[tuple[Place, pa.BinaryArray]]:
        numbers = sorted(bad)
        if self._options.bad_rows == "fail":
            first = numbers[0]
            raise SparkError(
                f"row {self._row + first} of the partition cannot be published: {bad[first]}; with badRows=skip or "
                "badRows=deadletter:TOPIC the others are"
            )
        self.bad.update(bad[number].removeprefix("its ") for number in numbers)
        if self._options.deadletter:
            letters = [self._letter(batch, bodies, number, bad[number]) for number in numbers]
            yield Place(self._options.deadletter, -1 if not self._layout.key else 0), pa.array(letters, pa.binary())

    def _letter(self, batch: pa.RecordBatch, bodies: pa.BinaryArray, number: int, why: str) -> bytes:
        topic = batch.column(self._layout.topic)[number].as_py() if self._layout.topic else self._options.topic
        body = bodies[number].as_py()
        shown = None if body is None else body[:SHOWN].decode("utf-8", "replace")
        return json.dumps({"reason": why, "topic": topic, "body": shown}).encode()

    # --- places

    def _by_place(self, batch: pa.RecordBatch, bodies: pa.BinaryArray) -> Iterator[tuple[Place, pa.BinaryArray]]:
        layout = self._layout
        if not (layout.topic or layout.defer or layout.key):
            yield Place(self._options.topic, -1), bodies
            return
        topics, topic_of = _coded(batch.column(layout.topic), str) if layout.topic else ([self._options.topic], None)
        nodes, node_of = _coded(batch.column(layout.key), self._node_of) if layout.key else ([-1], None)
        times, time_of = _coded(self._times(batch), int) if layout.defer else ([0], None)
        code = _combined(len(batch), (topic_of, len(topics)), (node_of, len(nodes)), (time_of, len(times)))
        order = pc.sort_indices(code)  # stable: rows keep their order
        bodies, runs = bodies.take(order), pc.run_end_encode(code.take(order))
        begin = 0
        for end, value in zip(runs.run_ends.to_pylist(), runs.values.to_pylist(), strict=True):
            rest, when = divmod(value, len(times))
            topic, node = divmod(rest, len(nodes))
            yield self._place(topics[topic], nodes[node], times[when]), bodies.slice(begin, end - begin)
            begin = end

    def _place(self, topic: str, node: int, when: int) -> Place:
        if self._layout.at_time:
            return Place(topic, node, due=when * 1000)
        return Place(topic, node, delay=when)

    def _node_of(self, value: object) -> int:
        return crc32(value if isinstance(value, bytes) else str(value).encode()) % self._nodes

    def _times(self, batch: pa.RecordBatch) -> pa.Int64Array:
        """ms of delay, or us of the time at which it is due, rounded up; 0 where it is null."""
        times = pc.fill_null(batch.column(self._layout.defer).cast(pa.int64()), 0)
        if not self._layout.at_time:
            return times
        return pc.multiply(pc.divide(pc.add(times, GRAIN - 1), GRAIN), GRAIN)

    def _delays(self, batch: pa.RecordBatch) -> pa.Int64Array:
        """In ms."""
        times = batch.column(self._layout.defer).cast(pa.int64())
        if not self._layout.at_time:
            return times
        return pc.divide(pc.subtract(times, int(self._clock() * 1e6)), 1000)


def _note(found: dict[int, str], mask: pa.BooleanArray, why: str) -> None:
    if pc.any(mask).as_py():
        found.update(dict.fromkeys(pc.indices_nonzero(mask).to_pylist(), why))


def _coded(column: pa.Array, make: Callable[..., object]) -> tuple[list, pa.Array]:  # type: ignore[type-arg]
    """What the values are made into, each once, and which of them each row has."""
    encoded = pc.dictionary_encode(column, null_encoding="encode")
    values = [make(value) for value in encoded.dictionary.to_pylist()]
    different = list(dict.fromkeys(values))
    place = {value: number for number, value in enumerate(different)}
    return different, pa.array([place[value] for value in values], pa.int64()).take(encoded.indices)


def _combined(rows: int, *parts: tuple[pa.Array | None, int]) -> pa.Int64Array:
    code = pa.repeat(pa.scalar(0, pa.int64()), rows)
    for which, count in parts:
        code = pc.multiply(code, count)
        if which is not None:
            code = pc.add(code, which)
    return code
