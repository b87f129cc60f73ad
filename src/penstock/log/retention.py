"""Which segments may be deleted, and which of them are: by a topic's limits, the node's total, and what must stay free.

Pure arithmetic over what the logs say of themselves; deletes nothing. Nothing at or above a topic's floor (the lowest
offset that R, a durable channel or a reader still needs) is ever named.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.log.segment import Segment
    from penstock.log.topic_log import TopicLog


@dataclass(frozen=True, slots=True)
class Limits:
    """What consumed data a topic keeps: the first of the two that is reached deletes; 0 keeps none."""

    bytes: int = 1 << 30
    time: int = 24 * 3600 * 10**9  # ns


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


def deletable(log: TopicLog, floor: int) -> list[Segment]:
    """The closed segments wholly below the floor, oldest first."""
    segments = log.chain.segments
    return [segment for segment, following in itertools.pairwise(segments) if following.first <= floor]


def expired(kept: Kept, now: int) -> int:
    """Below which offset the topic's own limits delete."""
    candidates = deletable(kept.log, kept.floor)
    retained = sum(segment.position for segment in candidates)
    below = kept.log.earliest
    for segment in candidates:
        if retained <= kept.limits.bytes and now - segment.last_time < kept.limits.time:
            break
        retained -= segment.position
        below = _behind(kept.log, segment)
    return below


def over_total(all_kept: Iterable[Kept], limits: NodeLimits, free: int) -> dict[str, int]:
    """Below which offset each topic (by its folder) has to delete for the node's sake: the oldest data first."""
    candidates = [
        (segment.last_time, kept.log.birth.folder, segment.first, segment, kept.log)
        for kept in all_kept
        for segment in deletable(kept.log, kept.floor)
    ]
    candidates.sort(key=lambda candidate: candidate[:3])
    excess = max(sum(c[3].position for c in candidates) - limits.total_bytes, limits.min_free - free)
    below: dict[str, int] = {}
    for _, folder, _, segment, log in candidates:
        if excess <= 0:
            break
        excess -= segment.position
        below[folder] = _behind(log, segment)
    return below


def _behind(log: TopicLog, segment: Segment) -> int:
    segments = log.chain.segments
    return segments[segments.index(segment) + 1].first
