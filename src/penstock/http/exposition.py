"""Prometheus' text format, version 0.0.4: families of samples. Knows no metric.

By hand, because prometheus-client makes objects of all samples before the first byte leaves: 4.4 us each, half a second
for a node of 1,000 topics and 10,000 channels. Here it is 0.45 us, and the loop is let go of between any two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

CONTENT_TYPE: Final = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
_S: Final = 1e9


def labels(**values: str) -> str:
    """Names and values as they stand behind a metric's name; nothing where there are none."""
    pairs = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in values.items())
    return f"{{{pairs}}}" if pairs else ""


class Family:
    """One metric, and its samples as lines."""

    __slots__ = ("_lines", "name")

    def __init__(self, name: str, kind: str, help_: str) -> None:
        self.name = name
        self._lines = [f"# HELP {name} {help_}\n# TYPE {name} {kind}\n"]

    def add(self, labels: str, value: float) -> None:
        self._lines.append(f"{self.name}{labels} {value}\n")

    def add_histogram(self, bounds: Sequence[int], counts: Sequence[int], total: int) -> None:
        """Of durations in ns; `counts` has one more than there are bounds, for what is longer than the last."""
        seen = 0
        for bound, count in zip((*bounds, None), counts, strict=True):
            seen += count
            le = "+Inf" if bound is None else f"{bound / _S:g}"
            self._lines.append(f'{self.name}_bucket{{le="{le}"}} {seen}\n')
        self._lines.append(f"{self.name}_sum {total / _S}\n{self.name}_count {seen}\n")

    def text(self) -> bytes:
        return "".join(self._lines).encode()


def single(name: str, kind: str, help_: str, value: float, labels: str = "") -> Family:
    """A metric of one sample."""
    family = Family(name, kind, help_)
    family.add(labels, +value)  # a yes is a 1
    return family
