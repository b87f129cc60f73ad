"""A source and a sink in Python that do nothing: what Spark leaves to any other. The workers import this module.

spark.read.format("ready")      rows of the source's shape, in batches that are made once a task
frame.write.format("dropping")  takes what it is given, and drops it
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)

from bench.load import BODIES, SIZE

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.types import StructType

SCHEMA: Final = "topic STRING, node STRING, offset BIGINT, id STRING, timestamp TIMESTAMP, body BINARY"
ROWS: Final = (4 << 20) // (SIZE + 30)  # of a batch: as many as the source makes of these messages


class Ready(DataSource):
    """Options: `total` rows, in partitions of `most`."""

    @classmethod
    def name(cls) -> str:
        return "ready"

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        return ReadyReader(int(self.options["total"]), int(self.options["most"]))


class ReadyReader(DataSourceReader):
    def __init__(self, total: int, most: int) -> None:
        self._total = total
        self._most = most

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(min(self._most, self._total - at)) for at in range(0, self._total, self._most)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        batch, left = _batch(), int(partition.value)
        while left > 0:
            yield batch.slice(0, left)
            left -= len(batch)


def _batch() -> pa.RecordBatch:
    import pyarrow as pa

    columns = {
        "topic": pa.repeat(pa.scalar("bench"), ROWS),
        "node": pa.repeat(pa.scalar("0123456789abcdef"), ROWS),
        "offset": pa.array(range(ROWS), pa.int64()),
        "id": pa.array([f"{number:016x}" for number in range(ROWS)]),
        "timestamp": pa.array(range(ROWS), pa.timestamp("us", tz="UTC")),
        "body": pa.array([BODIES[number % len(BODIES)] for number in range(ROWS)], pa.binary()),
    }
    return pa.RecordBatch.from_pydict(columns)


class Dropping(DataSource):
    @classmethod
    def name(cls) -> str:
        return "dropping"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return DroppingWriter()


class DroppingWriter(DataSourceArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()
