"""What the next batch reads: from where the query stands, what there is, and its limits. Pure: no Spark, no node.

for each topic on each node:  where it goes on (a loss may lie before it)
all together:                 limits, shared by lag
for each range:               losses inside it; holes to skip
the end's offsets:            with all of that written down
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.spark.source import loss
from penstock.spark.source.offsets import Offsets, Position
from penstock.spark.source.ranges import Range, within
from penstock.spark.source.sharing import shares

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.spark.source.log import Log
    from penstock.spark.source.loss import Loss
    from penstock.spark.source.offsets import Place


TASKS: Final = 8  # of a batch, unless they would be smaller or larger than this:
FEW: Final = 250_000  # records; to start a task costs as much as some 45,000
MANY: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Limits:
    """What one batch takes at most, and one partition of it. None is no limit."""

    records: int | None = None
    bytes: int | None = None
    per_partition: int = 0  # 0: by how many there are
    partitions: int = 1  # at least, where there are as many messages

    def split(self, total: int) -> int:
        """Records of a partition, for a batch of so many."""
        usual = max(FEW, min(MANY, total // TASKS))
        return max(1, min(self.per_partition or usual, total // self.partitions))


class Plan(NamedTuple):
    end: Offsets
    losses: tuple[Loss, ...]  # that it reads on behind


def plan(start: Offsets, logs: Mapping[Place, Log], limits: Limits, gone: Mapping[Place, Loss] | None = None) -> Plan:
    """The offsets that the next batch ends with.

    `logs` is what there is; whoever is missing in it is waited for where he stands, unless he is `gone` for good.
    """
    gone = gone or {}
    losses = list(gone.values())
    ranges: list[Range] = []
    for place, log in sorted(logs.items()):
        found, lost = _available(start.positions.get(place), log)
        ranges.append(found)
        losses += lost
    cut = _limited(ranges, logs, limits)
    for each in cut:
        losses += loss.in_holes(logs[each.place], each.first, each.until)
    return Plan(_offsets(start, cut, limits, gone), tuple(losses))


def _available(position: Position | None, log: Log) -> tuple[Range, list[Loss]]:
    """All that a log has beyond a position; a topic that is new to the query is read from its earliest."""
    lost = loss.at_start(position, log) if position else None
    if position is None or position.incarnation != log.incarnation:
        first = log.earliest
    elif lost:
        first = min(max(position.offset, log.earliest), log.committed)
    else:
        first = position.offset
    until = max(first, log.committed)
    holes = within([hole[:2] for hole in log.holes], first, until)
    return Range(log.place, log.incarnation, first, until, holes), [lost] if lost else []


def _limited(ranges: Sequence[Range], logs: Mapping[Place, Log], limits: Limits) -> list[Range]:
    sizes = [each.size for each in ranges]
    allowed = sizes if limits.records is None else shares(limits.records, sizes)
    if limits.bytes is not None:
        allowed = [min(pair) for pair in zip(allowed, _by_bytes(ranges, sizes, logs, limits.bytes), strict=True)]
    return [each.cut(count) for each, count in zip(ranges, allowed, strict=True)]


def _by_bytes(ranges: Sequence[Range], sizes: Sequence[int], logs: Mapping[Place, Log], most: int) -> list[int]:
    """How many records of each range are about so many bytes; one of each at least, or a large one would stay."""
    lags = [
        round(sum(logs[each.place].bytes_in(first, until) for first, until in each.solid())) or each.size
        for each in ranges
    ]
    dealt = shares(most, lags)
    return [
        min(size, max(1, size * share // lag)) if lag else size
        for size, share, lag in zip(sizes, dealt, lags, strict=True)
    ]


def _offsets(start: Offsets, ranges: Sequence[Range], limits: Limits, gone: Mapping[Place, Loss]) -> Offsets:
    positions = {place: at for place, at in start.positions.items() if place not in gone}
    begins: dict[Place, int] = {}
    for each in ranges:
        before = start.positions.get(each.place)
        positions[each.place] = Position(each.incarnation, each.until)
        if start.initial or before != Position(each.incarnation, each.first):
            begins[each.place] = each.first
    split = limits.split(sum(each.size for each in ranges))
    skips = {each.place: each.skip for each in ranges if each.skip}
    return replace(start, positions=positions, split=split, begins=begins, skips=skips, initial=False)
