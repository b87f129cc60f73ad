"""Figures as an SVG: a bar for each server, a group for each figure. Knows no load."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from penstock.bench.figures import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.bench.figures import Figure

COLOURS: Final = ("#1f6f8b", "#e0a458", "#7a9e7e", "#a26769")
_BAR: Final = 18  # all in pixels
_LEFT: Final = 200
_WIDTH: Final = 320
_RIGHT: Final = 180


def bars(title: str, servers: Sequence[str], figures: Sequence[Sequence[Figure]]) -> str:
    """`figures` has those of each server, the same ones in the same order; each group has a scale of its own."""
    lines = [_text(10, 22, title, bold=True)]
    y = 40
    for number, server in enumerate(servers):
        lines.append(_bar(10, y, 12, COLOURS[number % len(COLOURS)]))
        lines.append(_text(30, y + 12, server))
        y += _BAR
    for group in zip(*figures, strict=True):
        y += 12
        largest = max(each.value for each in group) or 1
        lines.append(_text(10, y + 13, group[0].name.strip()))
        for number, each in enumerate(group):
            width = max(1.0, each.value / largest * _WIDTH)
            lines.append(_bar(_LEFT, y, width, COLOURS[number % len(COLOURS)]))
            lines.append(_text(_LEFT + width + 6, y + 13, f"{shown(each.value)} {each.unit}"))
            y += _BAR
    width = _LEFT + _WIDTH + _RIGHT
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y + 12}" font-family="sans-serif">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *lines, "</svg>"]) + "\n"


def _bar(x: float, y: float, width: float, colour: str) -> str:
    return f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.1f}" height="{_BAR - 3}" fill="{colour}"/>'


def _text(x: float, y: float, text: str, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.0f}" y="{y:.0f}" font-size="12"{weight}>{escape(text)}</text>'
