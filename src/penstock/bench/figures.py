"""Figures: what a load found, how two servers compare, and how that is told. Knows no load."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Figure(NamedTuple):
    """One number; `less` where less is better."""

    name: str
    value: float
    unit: str
    less: bool = False


class Ratio(NamedTuple):
    """How often A has what B has, round by round."""

    name: str
    unit: str
    less: bool
    a: float  # medians
    b: float
    rounds: list[float]

    @property
    def median(self) -> float:
        return median(self.rounds)


def ratios(a: Sequence[Sequence[Figure]], b: Sequence[Sequence[Figure]]) -> list[Ratio]:
    """Of rounds of the same load; what B has none of has no ratio."""
    found = []
    for number, figure in enumerate(a[0]):
        ours = [each[number].value for each in a]
        theirs = [each[number].value for each in b]
        if all(theirs):
            rounds = [x / y for x, y in zip(ours, theirs, strict=True)]
            found.append(Ratio(figure.name, figure.unit, figure.less, median(ours), median(theirs), rounds))
    return found


def medians(rounds: Sequence[Sequence[Figure]]) -> list[Figure]:
    return [each._replace(value=median(r[i].value for r in rounds)) for i, each in enumerate(rounds[0])]


def table(figures: Iterable[Figure]) -> list[str]:
    return aligned([[each.name, shown(each.value), each.unit] for each in figures])


def ratio_table(found: Iterable[Ratio]) -> list[str]:
    rows = [["", "A", "B", "", "A / B", "of the rounds"]]
    for each in found:
        spread = f"{min(each.rounds):.2f} to {max(each.rounds):.2f}"
        note = f"{spread}, less is better" if each.less else spread
        rows.append([each.name, shown(each.a), shown(each.b), each.unit, f"{each.median:.2f}", note])
    return aligned(rows)


def shown(value: float) -> str:
    """Three digits at least, with a comma at each thousand."""
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 10 else f"{value:.1f}"


def aligned(rows: list[list[str]]) -> list[str]:
    """Columns of numbers to the right, as far as they have any; words to the left."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = []
        for cell, column in zip(row, columns, strict=True):
            width = max(map(len, column))
            cells.append(cell.rjust(width) if any(map(_is_number, column)) else cell.ljust(width))
        lines.append("  ".join(cells).rstrip())
    return lines


def _is_number(cell: str) -> bool:
    return cell.replace(",", "").replace(".", "").isdigit()
