"""Which segments may be deleted, and which of them are: by a topic's limits, the node's total, and what must stay free.

Pure arithmetic over what the logs say of themselves; deletes nothing. Nothing at or above a topic's floor (the lowest
offset that R, a durable channel or a reader still needs) is ever named.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.log.entries import NODES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from penstock.log.segment import Segment
    from penstock.log.topic_log import TopicLog


@dataclass(frozen=True, slots=True)
class Limits:
    """What consumed data a topic keeps: the first of the two that is reached deletes; 0 keeps none."""

    bytes: int = 1 << 30
    time: int = 24 * 3600 * 10**9  # ns

    def over(self, others: Limits) -> Limits:
        """With those of the others where it says NODES."""
        return Limits(
            others.bytes if self.bytes == NODES else self.bytes, others.time if self.time == NODES else self.time
        )


NOTHING: Final = Limits(0, 0)


@dataclass(frozen=True, slots=True)
class NodeLimits:
    """What all topics together may keep."""

    total_bytes: int = 10 << 30
    min_free: int = 1 << 30


class Kept(NamedTuple):
    """A log, its floor, and its limits."""

    log: TopicLog
    floor: int
    limits: Limits


class _Deletable(NamedTuple):
    """A closed segment wholly below the floor; in the order in which they go."""

    time: int  # of its last record, or of one in front of it
    folder: str
    behind: int  # where the next one begins
    segment: Segment


def _deletable(kept: Kept) -> Iterator[_Deletable]:
    time = 0
    for segment, following in itertools.pairwise(kept.log.chain.segments):
        if following.first > kept.floor:
            break
        time = max(time, segment.last_time)
        yield _Deletable(time, kept.log.birth.folder, following.first, segment)


def expired(kept: Kept, now: int) -> int:
    """Below which offset the topic's own limits delete."""
    candidates = list(_deletable(kept))
    retained = sum(each.segment.position for each in candidates)
    below = kept.log.earliest
    for each in candidates:
        if retained <= kept.limits.bytes and max(0, now - each.time) < kept.limits.time:
            break
        retained -= each.segment.position
        below = each.behind
    return below


def over_total(all_kept: Iterable[Kept], limits: NodeLimits, free: int) -> dict[str, int]:
    """Below which offset each topic (by its folder) has to delete for the node's sake: the oldest data first."""
    candidates = sorted((each for kept in all_kept for each in _deletable(kept)), key=lambda each: each[:3])
    excess = max(sum(each.segment.position for each in candidates) - limits.total_bytes, limits.min_free - free)
    below: dict[str, int] = {}
    for each in candidates:
        if excess <= 0:
            break
        excess -= each.segment.position
        below[each.folder] = each.behind
    return below
