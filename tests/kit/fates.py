"""Which fates the doubtful steps of a moment may have: all of them, the corner cases, or drawn ones.

Fates are told by step; a step that is not named is kept.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import TypeAlias

from .device import HOLLOW, KEPT, LOST, Change, Entry, Fate, Item

Fates: TypeAlias = dict[int, Fate]


def is_write(item: Item) -> bool:
    return isinstance(item, Change) and item.data is not None


def count(items: Sequence[Item]) -> int:
    """How many `combinations` there are."""
    return prod(3 << (item.sectors - 1) if isinstance(item, Change) and item.sectors else 2 for item in items)


def combinations(items: Sequence[Item]) -> Iterator[Fates]:
    """Every fate of every step with every other."""
    steps = [item.step for item in items]
    for fates in product(*map(_options, items)):
        yield dict(zip(steps, fates, strict=True))


def _options(item: Item) -> list[Fate]:
    if not isinstance(item, Change) or not item.sectors:
        return [KEPT, LOST]
    last = 1 << (item.sectors - 1)
    with_last = [Fate(sectors, True) for sectors in range(last, 2 * last - 1)]
    return [KEPT, *with_last, *(Fate(sectors, sized) for sectors in range(last) for sized in (False, True))]


def corners(items: Sequence[Item]) -> Iterator[Fates]:
    """The cases that a wrong order of flushes, or a missing one, shows in; the most telling ones first."""
    names = {item.step: LOST for item in items if isinstance(item, Entry)}
    data = {item.step: LOST for item in items if isinstance(item, Change)}
    yield {}
    yield names | data
    yield data
    yield {item.step: HOLLOW if is_write(item) else LOST for item in items if isinstance(item, Change)}
    yield names
    for item in items:
        yield {item.step: LOST}
        if isinstance(item, Entry):
            yield dict.fromkeys(names.keys() - _resting_on(item, items), LOST)
        else:
            yield {step: LOST for step in data if step != item.step}
        if isinstance(item, Change) and item.data is not None:
            half = (1 << item.sectors // 2) - 1
            for fate in {HOLLOW, Fate(half, False), Fate(half, True), Fate(~half & ((1 << item.sectors) - 1), True)}:
                yield {item.step: fate}
    for stop in range(1, len(items)):
        yield {item.step: LOST for item in items[stop:]}
        yield {item.step: LOST for item in items[:stop]}


def _resting_on(entry: Entry, items: Sequence[Item]) -> set[int]:
    """The steps without which the entry cannot be kept, its own among them."""
    needed = {entry.step}
    for item in reversed(items):
        if isinstance(item, Entry) and item.step in needed:
            needed |= item.after
    return needed


def drawn(rng: random.Random, items: Sequence[Item]) -> Fates:
    """Random ones: sometimes in order, sometimes hardly anything lost or kept, so that few draws show many kinds."""
    if rng.random() < 0.25:
        stop = rng.randrange(len(items) + 1)
        fates: Fates = {item.step: LOST for item in items[stop:]}
        if stop < len(items) and is_write(items[stop]):
            fates[items[stop].step] = _torn(rng, items[stop])
        return fates
    lose_name, lose_data, tear = (rng.choice((0.0, 0.1, 0.5, 0.9)) for _ in range(3))
    fates = {}
    for item in items:
        if rng.random() < (lose_name if isinstance(item, Entry) else lose_data):
            fates[item.step] = LOST
        elif is_write(item) and rng.random() < tear:
            fates[item.step] = _torn(rng, item)
    return fates


def _torn(rng: random.Random, item: Item) -> Fate:
    """Any of its sectors, often the first or the last ones."""
    assert isinstance(item, Change)
    everything = (1 << item.sectors) - 1
    head = (1 << rng.randrange(item.sectors + 1)) - 1
    kept = rng.choice((rng.getrandbits(item.sectors), head, everything & ~head, 0))
    return KEPT if kept == everything else Fate(kept, rng.random() < 0.5)
