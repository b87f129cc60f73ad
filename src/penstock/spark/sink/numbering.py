"""Who publishes what: the names and numbers by which nsqd knows a chunk that comes again.

    producer    a hash of the query (or of a batch write) and the partition
    sequence    batch << 20 | number of the chunk, counted for each node

Spark gives a task that is run again, or runs again after a restart, the same query, batch and partition.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from zlib_ng.zlib_ng import adler32, crc32

from penstock.errors import SparkError
from penstock.spark.sink.options import EXACTLY_ONCE

if TYPE_CHECKING:
    from penstock.spark.sink.rows import Place

SHIFT: Final = 20  # so many bits has a chunk's number
QUERY: Final = "sql.streaming.queryId"
BATCH: Final = "streaming.sql.batchId"


@dataclass(frozen=True, slots=True)
class Numbering:
    """One task's; without a query (a batch write) nothing of it is known later."""

    query: str
    batch: int
    partition: int
    streaming: bool = True

    @property
    def producer(self) -> str:
        return producer_of(f"{self.query}/{self.partition}")

    def sequence(self, number: int) -> int:
        return self.batch << SHIFT | number


def producer_of(text: str) -> str:
    return "spark-" + blake2b(text.encode(), digest_size=16).hexdigest()


def of_stream(context: Any) -> Numbering:
    """What Spark tells the task of itself, by properties that are not documented: they may be missing one day."""
    query, batch = (context.getLocalProperty(name) for name in (QUERY, BATCH))
    if not query or not batch:
        raise SparkError(
            f"this Spark does not tell its tasks query and batch ({QUERY}, {BATCH}), by which {EXACTLY_ONCE} knows "
            "what was published: use delivery=at-least-once"
        )
    return Numbering(query, int(batch), context.partitionId())


class Digest:
    """Of all that a task published to one node so far: what differs once, differs from then on."""

    __slots__ = ("_adler", "_crc", "_size")

    def __init__(self) -> None:
        self._crc, self._adler, self._size = 0, 1, 0

    def add(self, place: Place, body: memoryview) -> str:
        """With this chunk, in hex."""
        head = f"{place.topic} {place.delay} {place.due} ".encode()
        self._crc = crc32(body, crc32(head, self._crc))
        self._adler = adler32(body, adler32(head, self._adler))
        self._size += len(body)
        return f"{self._crc:08x}{self._adler:08x}{self._size:016x}"
