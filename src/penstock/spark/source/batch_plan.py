"""What a batch read reads: between two bounds, from what the nodes have now."""

from __future__ import annotations

import logging
from contextlib import closing
from typing import TYPE_CHECKING, Final

from penstock.errors import BadOption, SparkError
from penstock.spark.source import loss
from penstock.spark.source.bounds import EARLIEST, LATEST, Bound, resolve
from penstock.spark.source.cluster import Cluster
from penstock.spark.source.offsets import Offsets, Position
from penstock.spark.source.planning import Limits, plan
from penstock.spark.source.ranges import ranges_of, split
from penstock.spark.source.task import Task

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.spark.source.cluster import View
    from penstock.spark.source.log import Log
    from penstock.spark.source.offsets import Place
    from penstock.spark.source.options import SourceOptions
    from penstock.spark.source.pushdown import Narrowing

FROM_EARLIEST: Final = Bound("startingOffsets", EARLIEST)
TO_LATEST: Final = Bound("endingOffsets", LATEST)

_logger = logging.getLogger("penstock.spark")


def planned(options: SourceOptions, narrow: Narrowing | None = None) -> list[Task]:
    """What each task reads."""
    with closing(Cluster(options)) as cluster:
        view = cluster.look(needed=True)
        _check_topics(options, view)
        begins = _resolved(cluster, view, options.begin or FROM_EARLIEST, EARLIEST)
        ends = _resolved(cluster, view, options.end or TO_LATEST, LATEST)
        logs = {place: _ended(log, begins[place], ends[place]) for place, log in view.logs.items()}
        if narrow:
            logs, begins = _narrowed(cluster, narrow, logs, begins)
    start = Offsets(begins)
    limits = Limits(per_partition=options.max_records_per_partition, partitions=options.min_partitions)
    end, losses = plan(start, logs, limits)
    loss.judge(losses, careful=options.fail_on_data_loss, logger=_logger)
    return [Task(view.nodes[part.node], part) for part in split(ranges_of(start, end), end.split)]


def _check_topics(options: SourceOptions, view: View) -> None:
    """A slip in a topic's name is no empty batch."""
    there = {place.topic for place in view.logs}
    for topic in options.topic:
        if topic not in there:
            raise SparkError(
                f"topic {topic} is not there on {', '.join(view.nodes.values())}: create it, or publish to it"
            )


def _resolved(cluster: Cluster, view: View, bound: Bound, default: int) -> dict[Place, Position]:
    at_time = {} if bound.time is None else cluster.at_time(view.logs.values(), bound.time)
    return resolve(bound, default, view.logs, at_time)


def _ended(log: Log, begin: Position, end: Position) -> Log:
    """The log as if it ended there."""
    if lost := loss.at_start(end, log) if end.offset > log.committed or end.incarnation != log.incarnation else None:
        raise lost.error()
    if begin.incarnation == end.incarnation and begin.offset > end.offset:
        raise BadOption(
            f"topic {log.place.topic} on node {log.place.node}: the batch begins at {begin.offset}, behind its end "
            f"{end.offset}"
        )
    return log._replace(committed=end.offset)


def _narrowed(
    cluster: Cluster, narrow: Narrowing, logs: Mapping[Place, Log], begins: Mapping[Place, Position]
) -> tuple[dict[Place, Log], dict[Place, Position]]:
    """The same without what filters leave out."""
    logs = {place: log for place, log in logs.items() if narrow.has(place.topic)}
    at_time = {} if narrow.time is None else cluster.at_time(logs.values(), narrow.time)
    found: dict[Place, Log] = {}
    starts: dict[Place, Position] = {}
    for place, log in logs.items():
        incarnation, first = begins[place]
        until = log.committed if narrow.until is None else max(first, min(log.committed, narrow.until))
        first = min(until, max(first, narrow.first, at_time.get(place, 0)))
        found[place], starts[place] = log._replace(committed=until), Position(incarnation, first)
    return found, starts
