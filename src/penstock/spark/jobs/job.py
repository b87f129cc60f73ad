"""A job: a name, what it was asked, and the queries that it is while it runs. Knows Spark's streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

T = TypeVar("T")

ROWS: Final = "rows"  # the name of what is counted, in a query's progress


@dataclass(frozen=True)
class Job(Generic[T]):
    """`every` is how often it looks for more, as Spark writes it; empty: it takes what is there, and ends."""

    name: str
    options: T
    checkpoint: str
    every: str = ""

    def stream(self, rows: DataFrame, part: str = "") -> DataStreamWriter:
        """To be written: counted, in the job's rhythm, with a checkpoint of its own."""
        name = f"{self.name}{part}"
        trigger: dict[str, Any] = {"processingTime": self.every} if self.every else {"availableNow": True}
        counted = rows.observe(ROWS, F.count(F.lit(1)).alias(ROWS))
        where = f"{self.checkpoint.rstrip('/')}/{part.strip(':') or 'main'}"
        return counted.writeStream.queryName(name).trigger(**trigger).option("checkpointLocation", where)


def read(spark: SparkSession, options: dict[str, str]) -> DataFrame:
    """Messages as a stream."""
    return spark.readStream.format("nsq").options(**options).load()


def to_files(writer: DataStreamWriter, path: str, form: str, partitions: tuple[str, ...] = ()) -> StreamingQuery:
    """Each row once, by Spark's own list of what it has written, in the folder's `_spark_metadata`."""
    partitioned = writer.partitionBy(*partitions) if partitions else writer
    return partitioned.format(form).option("path", path).start()
