"""What a task does: its rows become chunks, and these go to the nodes, each to the one that its number says.

    rows --bad ones apart--> places --> chunks --in turn, or by key--> outlets, one a node --> MPUB

Exactly once: chunks have the task's numbering; at the end each node is asked which chunk of it it has last. Where that
is a later one of the same batch, an earlier run of the task published more than this one has: that is no repeat.
"""

from __future__ import annotations

import json
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import SparkError
from penstock.spark.http import Access
from penstock.spark.sink.chunks import Chunks
from penstock.spark.sink.numbering import SHIFT, Digest, Numbering, producer_of
from penstock.spark.sink.outlet import CHANGED, Outlet, key_of
from penstock.spark.sink.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from penstock.spark.sink.chunks import Chunk
    from penstock.spark.sink.layout import Layout
    from penstock.spark.sink.nodes import Nodes
    from penstock.spark.sink.options import SinkOptions

_MOST: Final = 1 << SHIFT  # chunks to one node in one batch

_recognized: set[tuple[str, str]] = set()  # (query, node) that this process has found to know each other


@dataclass(frozen=True, slots=True)
class Published:
    """What a task did."""

    rows: int
    bad: Mapping[str, int] = field(default_factory=dict)  # by reason
    query: str = ""  # of a stream that publishes exactly once


class Publishing:
    """One task; `numbering` where each chunk is to be there once."""

    def __init__(
        self, options: SinkOptions, layout: Layout, nodes: Nodes, partition: int, numbering: Numbering | None
    ) -> None:
        self._options = options
        self._nodes = nodes
        self._numbering = numbering
        self._next = partition  # so that partitions of few chunks do not all go to the first node
        self._rows = Rows(layout, options, len(nodes.urls), nodes.limits)
        self._chunks = Chunks(min(options.chunk_bytes, nodes.limits.publish))
        self._count = 0
        self._sent: list[dict[str, int]] = [{} for _ in nodes.urls]  # the last sequence, by topic
        self._numbers = [0] * len(nodes.urls)
        self._digests = [Digest() for _ in nodes.urls]

    def run(self, batches: Iterable[pa.RecordBatch]) -> Published:
        access = Access.of(self._options, timeout=max(1.0, self._options.patience))
        with ExitStack() as connections:
            self._outlets = [
                connections.enter_context(closing(Outlet(self._urls(number), access, self._options.patience)))
                for number in range(len(self._nodes.urls))
            ]
            self._recognize()
            for batch in batches:
                for place, bodies in self._rows.split(batch):
                    for chunk in self._chunks.add(place, bodies):
                        self._publish(chunk)
            for chunk in self._chunks.rest():
                self._publish(chunk)
            for outlet in self._outlets:
                outlet.settle()
            self._must_be_whole()
        query = self._numbering.query if self._numbering and self._numbering.streaming else ""
        return Published(self._count, dict(self._rows.bad), query)

    def _urls(self, number: int) -> list[str]:
        """Where it has to be that node, itself; else the others stand in for it."""
        urls = [*self._nodes.urls[number:], *self._nodes.urls[:number]]
        return urls[:1] if self._numbering or self._options.key_column else urls

    def _publish(self, chunk: Chunk) -> None:
        node = chunk.place.node
        if node < 0:
            node, self._next = self._next % len(self._outlets), self._next + 1
        self._count += chunk.count
        self._outlets[node].publish(chunk, self._key(node, chunk))

    def _key(self, node: int, chunk: Chunk) -> str:
        if self._numbering is None:
            return ""
        number = self._numbers[node]
        if number >= _MOST:
            raise SparkError(f"a partition of one batch makes more than {_MOST} publishes: raise option chunkBytes")
        self._numbers[node] += 1
        self._sent[node][chunk.place.topic] = self._numbering.sequence(number)
        return key_of(self._numbering, number, self._digests[node].add(chunk.place, chunk.body()))

    # --- exactly once

    def _recognize(self) -> None:
        """A query that goes on must be known to every node, by the mark that its last batch left."""
        numbering = self._numbering
        if not (numbering and numbering.streaming and numbering.batch and self._options.fail_on_state_loss):
            return
        for number, outlet in enumerate(self._outlets):
            if (numbering.query, outlet.url) in _recognized:
                continue
            mark = _json(outlet, f"/producer?producer={producer_of(numbering.query)}")["mark"]
            if mark is None or mark["digest"] != place_in_list(number, len(self._outlets)):
                why = "does not know this query" if mark is None else "had another place in option nsqd before"
                raise SparkError(
                    f"{outlet.url} {why}, so what was being published when the query stopped may be published twice: "
                    "with failOnStateLoss=false it goes on"
                )
            _recognized.add((numbering.query, outlet.url))

    def _must_be_whole(self) -> None:
        numbering = self._numbering
        if numbering is None:
            return
        for outlet, sent in zip(self._outlets, self._sent, strict=True):
            topics = _json(outlet, f"/producer?producer={numbering.producer}")["topics"]
            for topic, last in topics.items():
                ours = last["sequence"] >> SHIFT == numbering.batch
                if ours and last["sequence"] != sent.get(topic):
                    raise SparkError(f"{outlet.url}: topic {topic}: {CHANGED}")


def leave_marks(options: SinkOptions, nodes: Nodes, query: str, batch: int) -> None:
    """The batch is published: each node knows the query, and its own place in the list, from now on."""
    access = Access.of(options)
    for number, url in enumerate(nodes.urls):
        with closing(Outlet([url], access, options.patience)) as outlet:
            digest = place_in_list(number, len(nodes.urls))
            outlet.ask(f"/producer/mark?producer={producer_of(query)}&sequence={batch}&digest={digest}", "POST")


def place_in_list(number: int, count: int) -> str:
    return f"{number:04x}{count:04x}"


def _json(outlet: Outlet, target: str) -> dict[str, Any]:
    found = json.loads(outlet.ask(target).body)
    if not isinstance(found, dict):
        raise SparkError(f"{outlet.url}{target} answers no object: is it an nsqd?")
    return found
