"""A job: a name, what it was asked, and the queries that it is while it runs. Knows Spark's streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pyspark.sql import functions as F

from penstock.spark.jobs.folder import Folder
from penstock.spark.jobs.watching import ROWS, Watch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

T = TypeVar("T")


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
        return counted.writeStream.queryName(name).trigger(**trigger).option("checkpointLocation", self._place(part))

    def to_files(
        self, rows: DataFrame, path: str, form: str, partitions: tuple[str, ...] = (), part: str = "", **how: Any
    ) -> Watch:
        """Each row once, by Spark's own list of what it has written; begun."""
        folder = Folder(rows.sparkSession, path.rstrip("/"), self._place(part))
        folder.check()
        writer = self.stream(rows, part).format(form).options(**how)
        partitioned = writer.partitionBy(*partitions) if partitions else writer
        return Watch(partitioned.option("path", path).start(), folder)

    def _place(self, part: str) -> str:
        """Of the checkpoint of one of its queries."""
        return f"{self.checkpoint.rstrip('/')}/{part.strip(':') or 'main'}"


def read(spark: SparkSession, options: dict[str, str]) -> DataFrame:
    """Messages as a stream."""
    return spark.readStream.format("nsq").options(**options).load()
