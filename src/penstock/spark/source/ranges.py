"""Arithmetic of what a batch reads: ranges of offsets, with holes in them that hold nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from penstock.spark.source.offsets import Offsets, Place, Span


class Range(NamedTuple):
    """`[first, until)` of a topic's log, without what lies in the spans `skip`: in order, none touching another."""

    place: Place
    incarnation: str
    first: int
    until: int
    skip: tuple[Span, ...] = ()

    @property
    def size(self) -> int:
        """How many messages it has, at most."""
        return sum(until - first for first, until in self.solid())

    def solid(self) -> Iterator[Span]:
        """What of it may hold messages, in order."""
        at = self.first
        for first, next_ in self.skip:
            if min(first, self.until) > at:
                yield at, min(first, self.until)
            at = max(at, next_)
        if at < self.until:
            yield at, self.until

    def cut(self, count: int) -> Range:
        """Its first `count` messages; all of it, holes at its end too, where it has no more."""
        for first, until in self.solid() if count < self.size else ():
            if count <= until - first:
                return self.to(first + count)
            count -= until - first
        return self

    def to(self, until: int) -> Range:
        return self._replace(until=until, skip=within(self.skip, self.first, until))

    def after(self, first: int) -> Range:
        return self._replace(first=first, skip=within(self.skip, first, self.until))


def within(spans: Iterable[Span], first: int, until: int) -> tuple[Span, ...]:
    """What of the spans lies in `[first, until)`: in order, and those that touch as one."""
    found: list[Span] = []
    for begin, end in sorted((max(begin, first), min(end, until)) for begin, end in spans):
        if begin >= end:
            continue
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return tuple(found)


class Part(NamedTuple):
    """What one task reads, over one connection."""

    node: str
    ranges: tuple[Range, ...]


def split(ranges: Iterable[Range], most: int) -> list[Part]:
    """Parts of nearly equal size, none with more than `most` messages; those of several nodes in turn."""
    by_node: dict[str, list[Range]] = {}
    for each in ranges:
        by_node.setdefault(each.place.node, []).append(each)
    numbered = [
        (number, part) for node in sorted(by_node) for number, part in enumerate(_split_node(by_node[node], most))
    ]
    return [part for _, part in sorted(numbered)]


def _split_node(ranges: list[Range], most: int) -> Iterator[Part]:
    total = sum(each.size for each in ranges)
    parts = -(-total // most)
    wanted = [(number + 1) * total // parts - number * total // parts for number in range(parts)]
    taken: list[Range] = []
    room = wanted.pop(0) if wanted else 0
    for rest in ranges:
        while rest.size > room:
            piece = rest.cut(room)
            yield Part(rest.place.node, (*taken, piece))
            rest, taken, room = rest.after(piece.until), [], wanted.pop(0)
        if rest.size:
            taken.append(rest)
            room -= rest.size
            if not room:
                yield Part(rest.place.node, tuple(taken))
                taken, room = [], wanted.pop(0) if wanted else 0


def ranges_of(start: Offsets, end: Offsets) -> list[Range]:
    """What the batch between these offsets reads: a function of them and of nothing else."""
    found: list[Range] = []
    for place, (incarnation, until) in sorted(end.positions.items()):
        first = end.begins.get(place)
        if first is None:
            before = start.positions.get(place)
            first = until if before is None or before.incarnation != incarnation else before.offset
        if first < until:
            found.append(Range(place, incarnation, first, until, within(end.skips.get(place, ()), first, until)))
    return found
