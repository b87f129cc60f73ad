"""What Spark is handed to write with: planned on the driver for each batch, sent to the tasks, told how they ended."""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from penstock.errors import BadOption
from penstock.spark.sink.layout import layout_of
from penstock.spark.sink.nodes import nodes_of
from penstock.spark.sink.numbering import Numbering, of_stream
from penstock.spark.sink.options import sink_options
from penstock.spark.sink.publishing import Published, Publishing, leave_marks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from penstock.spark.sink.layout import Layout
    from penstock.spark.sink.options import SinkOptions

_logger = logging.getLogger("penstock.spark")


def writer(given: Mapping[str, str], schema: StructType, *, overwrite: bool) -> DataSourceArrowWriter:
    if overwrite:
        raise BadOption('mode overwrite: what is published cannot be taken back; use mode("append")')
    options = sink_options(given)
    return BatchWriter(options, layout_of(schema, options))


def stream_writer(given: Mapping[str, str], schema: StructType) -> DataSourceStreamArrowWriter:
    options = sink_options(given)
    return StreamWriter(options, layout_of(schema, options))


@dataclass
class Done(WriterCommitMessage):
    """A task's."""

    published: Published


class BatchWriter(DataSourceArrowWriter):
    """A task that is run again publishes nothing twice; another write of the same rows is another write."""

    def __init__(self, options: SinkOptions, layout: Layout) -> None:
        self._options = options
        self._layout = layout
        self._name = uuid.uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        nodes, partition = nodes_of(self._options), _context().partitionId()
        numbering = Numbering(self._name, 0, partition, streaming=False) if nodes.once else None
        return Done(Publishing(self._options, self._layout, nodes, partition, numbering).run(iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        _tell(messages)


class StreamWriter(DataSourceStreamArrowWriter):
    """A batch that is run again publishes nothing twice, as long as its plan gives the same rows in the same order."""

    def __init__(self, options: SinkOptions, layout: Layout) -> None:
        self._options = options
        self._layout = layout

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        nodes, context = nodes_of(self._options), _context()
        numbering = of_stream(context) if nodes.once else None
        return Done(Publishing(self._options, self._layout, nodes, context.partitionId(), numbering).run(iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        queries = {message.published.query for message in _tell(messages)} - {""}
        for query in queries:
            leave_marks(self._options, nodes_of(self._options), query, batchId)


def _context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("this runs in a task of Spark's")
    return context


def _tell(messages: Sequence[WriterCommitMessage | None]) -> list[Done]:
    """A log line with the rows that were bad."""
    done = [message for message in messages if isinstance(message, Done)]
    bad: Counter[str] = Counter()
    for message in done:
        bad.update(message.published.bad)
    if bad:
        told = ", ".join(f"{count} whose {why}" for why, count in bad.items())
        _logger.warning("%d rows were not published: %s", bad.total(), told)
    return done
