"""Times by their number, as in an HDR histogram: each is right to 1.6 %, and the largest exactly. Knows no clock.

index   0 .. 127, one for each value | then 64 for each doubling
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from penstock.bench.figures import Figure

if TYPE_CHECKING:
    from collections.abc import Iterable


class Histogram:
    """Of whole numbers, ns mostly."""

    def __init__(self, values: Iterable[int] = ()) -> None:
        self.counts: Counter[int] = Counter()
        self.largest = 0
        for value in values:
            self.add(value)

    def __len__(self) -> int:
        return self.counts.total()

    def add(self, value: int) -> None:
        value = max(value, 0)
        self.largest = max(self.largest, value)
        self.counts[_index(value)] += 1

    def merge(self, other: Histogram) -> None:
        self.counts += other.counts
        self.largest = max(self.largest, other.largest)

    def at(self, percent: float) -> int:
        """What `percent` of all are no larger than; 0 where there are none."""
        wanted = len(self) * percent / 100
        seen = 0
        for index in sorted(self.counts):
            seen += self.counts[index]
            if seen >= wanted:
                return min(_highest(index), self.largest)
        return self.largest

    def figures(self, name: str) -> list[Figure]:
        """p50, p99, p99.9 and the largest, of values in ns."""
        found = [(f"{name} p{percent:g}", self.at(percent)) for percent in (50, 99, 99.9)]
        return [Figure(each, value / 1e6, "ms", less=True) for each, value in [*found, (f"{name} max", self.largest)]]


def _index(value: int) -> int:
    shift = max(0, value.bit_length() - 7)
    return (shift << 6) + (value >> shift)


def _highest(index: int) -> int:
    """The largest value that has this index."""
    shift = max(0, (index >> 6) - 1)
    return ((index - (shift << 6) + 1) << shift) - 1
