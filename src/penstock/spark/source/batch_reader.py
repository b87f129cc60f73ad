"""`spark.read.format("nsq")`: plans once, from what the nodes have now, and reads. Moves no position on any node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader

from penstock.spark.source import task as tasks
from penstock.spark.source.batch_plan import planned
from penstock.spark.source.options import SourceOptions, source_options
from penstock.spark.source.pushdown import Narrowing, narrowing
from penstock.spark.source.rows import checked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql.datasource import Filter, InputPartition
    from pyspark.sql.types import StructType


def reader(given: Mapping[str, str], schema: StructType) -> DataSourceReader:
    options = source_options(given).for_batch()
    kind = NarrowingReader if options.pushdown else BatchReader
    return kind(options, checked(options, schema))


class BatchReader(DataSourceReader):
    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._narrowing = Narrowing()

    def partitions(self) -> Sequence[InputPartition]:
        return planned(self._options, self._narrowing)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return tasks.read(partition, self._options, self._schema)


class NarrowingReader(BatchReader):
    """A class of its own, since Spark refuses any reader that takes filters, unless its setting allows them."""

    def pushFilters(self, filters: list[Filter]) -> list[Filter]:
        self._narrowing = narrowing(filters)
        return filters
