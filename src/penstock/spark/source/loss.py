"""What is lost to a query: messages that it should have read and that are not there. Pure: a position, a log, a line.

Each kind is one sentence with the topic, the node, the offsets, and what to do. What somebody ordered is no loss: a
topic that was emptied holds nothing, and that is what its reader gets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.errors import DataLost
from penstock.spark.source.log import EMPTIED
from penstock.spark.source.offsets import Position
from penstock.spark.source.ranges import Range, within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from logging import Logger

    from penstock.spark.source.log import Log
    from penstock.spark.source.offsets import Place

HINT: Final = "failOnDataLoss=false reads on without them"


class Loss(NamedTuple):
    """What is gone, in a sentence; `first` and `next` are its offsets, where it is known which."""

    sentence: str
    first: int = 0
    next: int = 0

    def error(self) -> DataLost:
        return DataLost(f"{self.sentence}; {HINT}")


def judge(losses: Iterable[Loss], *, careful: bool, logger: Logger) -> None:
    """The first ends a careful query; another one says each in its log, and goes on."""
    for each in losses:
        if careful:
            raise each.error()
        count = f" ({each.next - each.first} offsets)" if each.next > each.first else ""
        logger.warning("%s%s; reading goes on", each.sentence, count)


def at_start(position: Position, log: Log) -> Loss | None:
    """What lies between where the query stands and where it can go on."""
    offset, where = position.offset, _where(log.place, log.url)
    if position.incarnation != log.incarnation:
        return Loss(
            f"{where} was deleted and made again: the query has read {offset} messages of incarnation "
            f"{position.incarnation}, and now it is {log.incarnation}"
        )
    if offset < log.earliest:
        return Loss(
            f"{where}: retention deleted the messages {offset} to {log.earliest - 1} before they were read",
            offset,
            log.earliest,
        )
    if offset > log.committed and not log.paused:
        return Loss(
            f"{where} ends at {log.committed}, and the query has read up to {offset}: was an older backup restored?",
            log.committed,
            offset,
        )
    return None


def in_holes(log: Log, first: int, until: int) -> Iterator[Loss]:
    """What is missing between two offsets, except what somebody ordered to be forgotten."""
    for hole in log.holes:
        begin, end = max(first, hole.first), min(until, hole.next)
        if begin < end and hole.why != EMPTIED:
            yield Loss(f"{_where(log.place, log.url)}: the offsets {begin} to {end - 1} {_why(hole.why)}", begin, end)


def between(place: Place, incarnation: str, first: int, until: int, log: Log | None) -> list[Loss]:
    """Why what was planned was not found between two offsets; nothing, where somebody ordered it."""
    position = Position(incarnation, first)
    if log is None:
        return [Loss(f"topic {place.topic} on node {place.node} is not there any more: it was to be read from {first}")]
    if lost := at_start(position, log):
        if lost.next <= first or lost.next >= until:
            return [lost]
        return [lost, *between(place, incarnation, lost.next, until, log)]
    found = list(in_holes(log, first, until))
    known = within([hole[:2] for hole in log.holes], first, until)
    rest = Range(place, incarnation, first, until, known).solid()
    return found + [
        Loss(f"{_where(place, log.url)}: the offsets {begin} to {end - 1} hold nothing", begin, end)
        for begin, end in rest
    ]


def topic_gone(place: Place, url: str, position: Position) -> Loss:
    return Loss(f"{_where(place, url)} is not there any more, and the query has read up to {position.offset}")


def node_gone(place: Place, position: Position, asked: Iterable[str]) -> Loss:
    return Loss(
        f"topic {place.topic} on node {place.node}, read up to {position.offset}: none of {', '.join(asked)} is that "
        "node (its data path is another one now, or its address is missing in the option nsqd)"
    )


def _where(place: Place, url: str) -> str:
    return f"topic {place.topic} on {url} (node {place.node})"


def _why(why: str) -> str:
    if why == "lost":
        return "were lost in a power cut"
    return "are damaged on its disk" if why == "damaged" else f"hold nothing ({why})"
