"""What a node says of one topic's log (`GET /log`). Knows no position and asks nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.errors import NodeFailed
from penstock.spark.source.offsets import Place

if TYPE_CHECKING:
    from collections.abc import Mapping

EMPTIED = "emptied"  # why there is a hole: somebody ordered it; else it is a loss


class Hole(NamedTuple):
    first: int
    next: int
    why: str


class Segment(NamedTuple):
    first: int
    end: int
    bytes: int


class Log(NamedTuple):
    """One topic's log, as it was a moment ago."""

    place: Place
    url: str
    incarnation: str
    earliest: int
    committed: int
    segments: tuple[Segment, ...] = ()
    holes: tuple[Hole, ...] = ()
    paused: bool = False  # the query's reader is: `committed` may lie below what it has read

    def bytes_in(self, first: int, until: int) -> float:
        """About how many bytes these offsets are in the segments."""
        found = 0.0
        for segment in self.segments:
            part = min(until, segment.end) - max(first, segment.first)
            if part > 0:
                found += segment.bytes * part / (segment.end - segment.first)
        return found


def log_of(url: str, found: Mapping[str, Any]) -> Log:
    """From the answer of the node at `url`; NodeFailed where it is none of Penstock's."""
    try:
        return Log(
            Place(found["node"], found["topic"]),
            url,
            found["incarnation"],
            found["earliest"],
            found["committed"],
            tuple(Segment(each["first"], each["end"], each["bytes"]) for each in found["segments"]),
            tuple(Hole(*each) for each in found["holes"]),
            bool((found.get("reader") or {}).get("paused")),
        )
    except (KeyError, TypeError):
        raise NodeFailed(f"{url}/log answers what is no log: is it a Penstock nsqd of another version?") from None
