"""`spark.readStream.format("nsq")`: what Spark asks of a stream, answered by plans. What is lost with it may be lost.

Spark's checkpoint is the truth. It asks in this order, in one long-lived process of the driver:

    initialOffset                once or more, until the first batch stands in the checkpoint
    latestOffset(start)          all below `start` is done: the reader's position on the nodes moves there
    partitions(start, end)       after a restart also of a batch that was planned by another process
    read(partition)              elsewhere, on another instance

`commit` has nothing to do: it comes late, or for the last batch never, and says nothing that the next `start` does not.
"""

from __future__ import annotations

import logging
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from penstock.errors import NodeFailed
from penstock.spark.http import patiently
from penstock.spark.source import loss
from penstock.spark.source import task as tasks
from penstock.spark.source.bounds import EARLIEST, LATEST, Bound, resolve
from penstock.spark.source.cluster import Cluster, View
from penstock.spark.source.offsets import Offsets, Position, offsets_of
from penstock.spark.source.options import NO_READER, SourceOptions, source_options
from penstock.spark.source.planning import Limits, plan
from penstock.spark.source.ranges import ranges_of, split
from penstock.spark.source.rows import checked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType

    from penstock.spark.source.offsets import Place

FROM_LATEST: Final = Bound("startingOffsets", LATEST)

_logger = logging.getLogger("penstock.spark")


def reader(given: Mapping[str, str], schema: StructType) -> DataSourceStreamReader:
    options = source_options(given).for_stream()
    return StreamReader(options, checked(options, schema))


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._driver: _Driver | None = None

    @property
    def driver(self) -> _Driver:
        """Made where it is first asked for something: executors are sent none."""
        if self._driver is None:
            self._driver = _Driver(self._options)
        return self._driver

    def initialOffset(self) -> dict[str, Any]:
        return self.driver.initial().as_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self._options.max_offsets_per_trigger
        return ReadMaxRows(most) if most else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self.driver.stop_at_latest()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """`start` itself where there is nothing new."""
        at = offsets_of(start)
        end = self.driver.next_end(at, self._limits(limit))
        return start if end.positions == at.positions and not at.initial else end.as_json()

    def _limits(self, limit: ReadLimit) -> Limits:
        options = self._options
        everything = isinstance(limit, ReadAllAvailable) and options.max_offsets_per_trigger > 0
        return Limits(
            limit.max_rows if isinstance(limit, ReadMaxRows) else None,
            None if everything else options.max_bytes_per_trigger or None,
            options.max_records_per_partition,
            options.min_partitions,
        )

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return self.driver.latest()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return self.driver.tasks(offsets_of(start), offsets_of(end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return tasks.read(partition, self._options, self._schema)

    def stop(self) -> None:
        if self._driver is not None:
            self._driver.cluster.close()


class _Driver:
    """The planning side of one query."""

    def __init__(self, options: SourceOptions) -> None:
        self.cluster = Cluster(options)
        self._options = options
        self._view = View({}, {})  # of the last look
        self._target: View | None = None  # with AvailableNow: as if nothing came after it
        self._told: dict[Place, Position] = {}  # where the reader is, on each node

    def initial(self) -> Offsets:
        """Where a new query begins; whatever it does not name yet is read from its earliest."""
        self._view = view = self._target or self.cluster.look(needed=True)
        begin = self._options.begin or FROM_LATEST
        at_time = {} if begin.time is None else self.cluster.at_time(view.logs.values(), begin.time)
        name = self._options.reader or f"spark-{secrets.token_hex(6)}"
        return Offsets(resolve(begin, EARLIEST, view.logs, at_time), reader=name, initial=True)

    def stop_at_latest(self) -> None:
        self._target = self.cluster.look(needed=True)

    def next_end(self, start: Offsets, limits: Limits) -> Offsets:
        reader = self._options.reader or start.reader
        if self._target is None:
            self._view = self.cluster.look("" if reader == NO_READER else reader)
        else:
            self._view = self._target = self._with_all(start, self._target)
        if reader != NO_READER:
            self._move_reader(reader, start)
        found = plan(start, self._view.logs, limits, self.cluster.gone(start, self._view))
        loss.judge(found.losses, careful=self._options.fail_on_data_loss, logger=_logger)
        return replace(found.end, reader=reader)

    def latest(self) -> dict[str, Any] | None:
        """For the query's progress: what there was at the last look."""
        logs = self._view.logs.values()
        return (
            Offsets({log.place: Position(log.incarnation, log.committed) for log in logs}).as_json() if logs else None
        )

    def tasks(self, start: Offsets, end: Offsets) -> list[tasks.Task]:
        parts = split(ranges_of(start, end), max(1, end.split))
        try:
            nodes = self._with_nodes({part.node for part in parts}, self._view).nodes
        except NodeFailed as error:
            if self._options.fail_on_data_loss:
                raise
            _logger.warning("%s; what it has of this batch is left out", error)
            nodes = self._view.nodes
        return [tasks.Task(nodes[part.node], part) for part in parts if part.node in nodes]

    def _move_reader(self, name: str, start: Offsets) -> None:
        """A hint for retention, and how far the query lags; once for each position."""
        for place, position in start.positions.items():
            url = self._view.nodes.get(place.node)
            if url and place in self._view.logs and self._told.get(place) != position:
                self.cluster.move_reader(name, url, place.topic, position)
                self._told[place] = position

    def _with_all(self, start: Offsets, target: View) -> View:
        """The target, and what nodes have that were not there yet: a query that ends must not end without them."""
        wanted = {place.node for place in start.positions if self._options.chooses(place.topic)}
        if self._options.nsqd:
            return target  # each of them has answered: who is not among them is gone
        found = self._with_nodes(wanted, target)
        return View({**found.nodes, **target.nodes}, {**found.logs, **target.logs})

    def _with_nodes(self, wanted: set[str], view: View) -> View:
        """A view in which these nodes are, after waiting for them."""
        if wanted <= view.nodes.keys():
            return view
        self._view = patiently(lambda: self._look_for(wanted), self._options.tries)
        return self._view

    def _look_for(self, wanted: set[str]) -> View:
        view = self.cluster.look()
        if missing := sorted(wanted - view.nodes.keys()):
            where = ", ".join(self._options.nsqd or self._options.lookupd)
            raise NodeFailed(
                f"node {missing[0]} is not there, by {where}: it has messages that this batch reads; start it, or see "
                "the option failOnDataLoss",
                passing=True,
            )
        return view
