"""A row of the table, and how it comes about: in alternating rounds, as the median of the rounds' ratios."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Rounds(NamedTuple):
    """Seconds that ours and the limit took, round by round."""

    ours: list[float]
    limit: list[float]

    @property
    def ratios(self) -> list[float]:
        return [ours / limit for ours, limit in zip(self.ours, self.limit, strict=True)]

    @property
    def ratio(self) -> float:
        """Above 1, ours is the slower one."""
        return median(self.ratios)

    @property
    def medians(self) -> tuple[float, float]:
        return median(self.ours), median(self.limit)


@dataclass(frozen=True)
class Row:
    """What was measured; `met` is None where there is no target, or where it could not be measured."""

    name: str
    ours: str
    limit: str = ""  # the machine's own, for the same work
    rounds: Rounds | None = None
    target: str = ""
    met: bool | None = None
    figures: dict[str, float] = field(default_factory=dict)  # bare numbers, for programs


def alternate(ours: Callable[[], float], limit: Callable[[], float], rounds: int) -> Rounds:
    """Both give the seconds that one round took; each goes first in every other round."""
    measured = Rounds([], [])
    for number in range(rounds):
        order = [(ours, measured.ours), (limit, measured.limit)]
        for run, seconds in order if number % 2 else reversed(order):
            gc.collect()
            seconds.append(run())
    return measured


def micro(seconds: float) -> str:
    return f"{seconds * 1e6:,.1f} us"


def millions(rate: float) -> str:
    return f"{rate / 1e6:,.2f} M/s"
