"""What a node measures of itself: turns of the loop, flushes, publishes. Knows durations in ns, and no clock.

Compiled: each turn of the loop comes here.
"""

# mypy: no-warn-return-any
from __future__ import annotations

from array import array
from typing import Final

try:
    import cython
except ImportError:  # a plain build has no need of Cython
    from penstock import plain as cython  # type: ignore[no-redef]

_US: Final = 1000
BOUNDS: Final = tuple(
    us * _US
    for us in (
        50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000,
        5_000_000,
    )
)  # fmt: skip


@cython.cclass
class Histogram:
    """How many durations were no longer than each of the bounds, and longer than the one before it."""

    total = cython.declare(cython.longlong, visibility="readonly")
    _bounds: cython.longlong[::1]
    _counts: cython.longlong[::1]

    def __init__(self) -> None:
        self.total = 0
        self._bounds = array("q", BOUNDS)
        self._counts = array("q", bytes(8 * (len(BOUNDS) + 1)))

    @property
    def counts(self) -> list[int]:
        """Of each bound, and of what is longer than the last."""
        return list(self._counts)

    @cython.ccall
    @cython.boundscheck(False)
    @cython.wraparound(False)
    def add(self, duration: cython.longlong, times: cython.longlong = 1) -> cython.void:
        place: cython.Py_ssize_t = 0
        while place < len(self._bounds) and duration > self._bounds[place]:
            place += 1
        self._counts[place] += times
        self.total += duration * times


@cython.cclass
class Meters:
    """Of one node."""

    turns = cython.declare(Histogram, visibility="readonly")  # how long each turn held the loop
    flushes = cython.declare(Histogram, visibility="readonly")
    publishes = cython.declare(Histogram, visibility="readonly")  # from the turn that brought one to its answer's end
    _at_once: cython.longlong
    _waited: list[tuple[int, int]]

    def __init__(self) -> None:
        self.turns = Histogram()
        self.flushes = Histogram()
        self.publishes = Histogram()
        self._at_once = 0  # publishes of this turn that it answers
        self._waited = []  # others that it answers: for how long, how many

    def answered(self, waited: cython.longlong, publishes: cython.longlong) -> None:
        """So many publishes have their answer, which leaves with this turn."""
        if waited:
            self._waited.append((waited, publishes))
        else:
            self._at_once += publishes

    def turn_over(self, took: cython.longlong) -> None:
        self.turns.add(took)
        if self._at_once:
            self.publishes.add(took, self._at_once)
            self._at_once = 0
        if self._waited:
            for waited, publishes in self._waited:
                self.publishes.add(waited + took, publishes)
            self._waited.clear()
