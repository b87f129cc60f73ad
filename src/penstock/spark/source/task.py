"""What one Spark task reads: a part of a batch, from one node, as Arrow batches."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from penstock.spark.http import Access, Connection
from penstock.spark.source.fetching import Fetch

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from penstock.spark.source.options import SourceOptions
    from penstock.spark.source.ranges import Part, Range


class Task(InputPartition):
    """Sent to an executor; the secrets are not in it."""

    def __init__(self, url: str, part: Part) -> None:
        super().__init__(None)
        self.url = url
        self.part = part


def read(task: InputPartition, options: SourceOptions, schema: StructType) -> Iterator[pa.RecordBatch]:
    """The rows of the task; of any other partition (Spark makes one where there is none) nothing."""
    if not isinstance(task, Task):
        return
    from penstock.spark.source.rows import columns_of

    columns = columns_of(schema)
    with closing(connection_of(task, options)) as connection:
        for wanted in task.part.ranges:
            for chunk in fetch_of(connection, wanted, options).chunks():
                yield columns.batch(wanted.place, chunk, wanted.first, wanted.until)


def connection_of(task: Task, options: SourceOptions) -> Connection:
    return Connection(task.url, Access.of(options, options.timeout))


def fetch_of(connection: Connection, wanted: Range, options: SourceOptions) -> Fetch:
    return Fetch(connection, wanted, tries=options.tries, careful=options.fail_on_data_loss, pause=time.sleep)
