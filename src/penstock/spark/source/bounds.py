"""Where a read begins and ends, as its options say it: a word, offsets in JSON, or a time. Asks no node."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import BadOption, SparkError
from penstock.spark.source.offsets import Place, Position, offsets_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.spark.source.log import Log

EARLIEST: Final = -2  # as Spark's Kafka source writes them in JSON
LATEST: Final = -1


@dataclass(frozen=True, slots=True)
class Bound:
    """One of: `word` for all logs alike, `offsets` for some (the others have the default), `time` (ns)."""

    option: str
    word: int = LATEST
    offsets: Mapping[Place, Position] | None = None
    time: int | None = None


def bound_of(option: str, text: str) -> Bound:
    """What startingOffsets or endingOffsets say."""
    words = {"earliest": EARLIEST, "latest": LATEST}
    if text.lower() in words:
        return Bound(option, words[text.lower()])
    try:
        found = json.loads(text)
    except ValueError:
        raise BadOption(f"option {option}: {text!r} is neither earliest, latest nor JSON") from None
    return Bound(option, offsets=_offsets(option, found))


def _offsets(option: str, found: Any) -> dict[Place, Position]:
    """As a query's progress shows them, or as for Kafka: `{"topic": {"node": offset}}`, -2 earliest, -1 latest."""
    try:
        if "nodes" in found:
            return dict(offsets_of(found).positions)
        positions = {
            Place(node, topic): Position("", int(offset))
            for topic, nodes in found.items()
            for node, offset in nodes.items()
        }
    except (SparkError, TypeError, ValueError, AttributeError):
        positions = {}
    if not positions or any(offset < EARLIEST for _, offset in positions.values()):
        raise BadOption(f'option {option}: this JSON has no offsets: {{"TOPIC":{{"NODE":OFFSET}}}}, or a progress\'s')
    return positions


def moment_of(option: str, text: str) -> Bound:
    """What startingTimestamp or endingTimestamp say."""
    try:
        if text.isascii() and text.isdigit():
            return Bound(option, time=int(text) * 10**6)
        found = datetime.fromisoformat(text)
    except ValueError:
        raise BadOption(
            f"option {option}: {text!r} is neither milliseconds since 1970 nor a time such as 2026-01-31T12:00:00Z"
        ) from None
    if found.tzinfo is None:
        raise BadOption(f"option {option}: {text!r} says no time zone, as in 2026-01-31T12:00:00Z")
    since = found - datetime(1970, 1, 1, tzinfo=UTC)
    return Bound(option, time=max(0, (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000))


def resolve(
    bound: Bound, default: int, logs: Mapping[Place, Log], at_time: Mapping[Place, int]
) -> dict[Place, Position]:
    """Where the bound is in each log; `default` is for what offsets in JSON leave out."""
    given = bound.offsets or {}
    for place in given.keys() - logs.keys():
        known = ", ".join(f"{log.place.topic} on {log.place.node}" for log in logs.values()) or "nothing"
        raise BadOption(
            f"option {bound.option}: topic {place.topic} on node {place.node} is not read: there is {known}"
        )
    found: dict[Place, Position] = {}
    for place, log in logs.items():
        incarnation, offset = given.get(place, Position("", default if bound.offsets is not None else bound.word))
        if bound.time is not None:
            offset = at_time[place]
        elif offset == EARLIEST:
            offset = log.earliest
        elif offset == LATEST:
            offset = log.committed
        found[place] = Position(incarnation or log.incarnation, offset)
    return found
