"""How long messages took from their publish to their finish, by percentiles of a window of time.

    given    frame --> id, published          a ring by id; those that two share a place of stand in a dict
    finished id ---> now - published --> counts of this half of the window; those of the half before are kept

Knows ids and frames as a client gets them, and times of the wall that it is given (ns). A channel has one only where
percentiles were asked for.

Compiled: each message that such a channel delivers, and each that is finished, comes here.
"""

# mypy: no-warn-return-any
from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

try:
    import cython
except ImportError:  # a plain build has no need of Cython
    from penstock import plain as cython  # type: ignore[no-redef]

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Counts are of us: one for each up to 64, then 32 for each doubling, so that each is right to 1.6 %; to 2**40, 13 days
_LINEAR = cython.declare(cython.longlong, 64)
_LONGEST = cython.declare(cython.longlong, (1 << 40) - 1)
_NS: Final = 1000
COUNTS: Final = 64 + 34 * 32
_SMALLEST: Final = 256


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _place(us: cython.longlong) -> cython.Py_ssize_t:
    shift: cython.int = 0
    while (us >> shift) >= _LINEAR:
        shift += 1
    return (shift << 5) + (us >> shift)


def _middle(place: int) -> int:
    """ns in the middle of those that are counted there."""
    shift = max(0, (place >> 5) - 1)
    first = (place - (shift << 5)) << shift
    return (2 * first + (1 << shift)) * _NS // 2


@cython.cclass
class Latency:
    """One channel's."""

    _half: cython.longlong
    _moves: cython.longlong
    _now: cython.uint[::1]
    _before: cython.uint[::1]
    _mask: cython.Py_ssize_t
    _ids: cython.ulonglong[::1]
    _published: cython.longlong[::1]
    _others: dict[int, int]

    def __init__(self, window: cython.longlong) -> None:
        self._half = max(1, window // 2)
        self._moves = 0  # when this half of the window is the one before
        self._now = self._before = _NOTHING
        self.forget()

    def forget(self) -> None:
        """What is in flight is not any more."""
        self._mask = -1
        self._ids = _NO_IDS
        self._published = _NO_TIMES
        self._others = {}

    # --- what is in flight

    @cython.boundscheck(False)
    @cython.wraparound(False)
    def given(self, offsets: Iterable[int], base: cython.ulonglong, frames: bytes) -> None:
        """The messages at these offsets were delivered; `frames` are theirs, in this order."""
        data: cython.const_uchar[::1] = frames
        at: cython.Py_ssize_t = 0
        byte: cython.Py_ssize_t
        offset: cython.ulonglong
        size: cython.longlong
        published: cython.longlong
        if self._mask < 0:
            self._make(_SMALLEST)
        for offset in offsets:
            if at + 16 > len(data):
                raise ValueError("fewer frames than offsets")
            size = 0
            for byte in range(at, at + 4):
                size = (size << 8) | data[byte]
            published = 0
            for byte in range(at + 8, at + 16):
                published = (published << 8) | data[byte]
            self._put(base + offset, published)
            at += 4 + size
        if len(self._others) > self._mask:
            self._grow()

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.wraparound(False)
    def _put(self, id_: cython.ulonglong, published: cython.longlong) -> cython.void:
        at: cython.Py_ssize_t = id_ & self._mask
        other: cython.ulonglong = self._ids[at]
        if self._others:
            self._others.pop(id_, None)
        if other and other != id_:
            self._others[other] = self._published[at]
        self._ids[at] = id_
        self._published[at] = published

    @cython.cfunc
    def _make(self, size: cython.Py_ssize_t) -> cython.void:
        self._mask = size - 1
        self._ids = array("Q", bytes(8 * size))
        self._published = array("q", bytes(8 * size))

    @cython.cfunc
    def _grow(self) -> cython.void:
        """Of those that found no place, most do in twice the room."""
        at: cython.Py_ssize_t
        ids: cython.ulonglong[::1] = self._ids
        published: cython.longlong[::1] = self._published
        others = self._others
        self._others = {}
        self._make(2 * (self._mask + 1))
        for id_, time in others.items():
            self._put(id_, time)
        for at in range(len(ids)):
            if ids[at]:
                self._put(ids[at], published[at])

    # --- what is finished

    @cython.boundscheck(False)
    @cython.wraparound(False)
    def finished(self, ids: array[int], failed: Sequence[int], now: cython.longlong) -> None:
        """These were finished, but for those at the places `failed`, which are in order."""
        which: cython.ulonglong[::1] = ids
        number: cython.Py_ssize_t
        failures: cython.Py_ssize_t = 0
        published: cython.longlong
        self._move(now)
        if len(self._now) != COUNTS:
            self._now = array("I", bytes(4 * COUNTS))
        for number in range(len(which)):
            if failures < len(failed) and failed[failures] == number:
                failures += 1
                continue
            published = self._take(which[number])
            if published >= 0:
                self._now[_place(min(max(now - published, 0) // 1000, _LONGEST))] += 1

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.wraparound(False)
    def _take(self, id_: cython.ulonglong) -> cython.longlong:
        """When it was published; -1 for one that was not given."""
        at: cython.Py_ssize_t
        if self._mask < 0:
            return -1
        at = id_ & self._mask
        if self._ids[at] == id_:
            self._ids[at] = 0
            return self._published[at]
        return self._others.pop(id_, -1) if self._others else -1

    # --- the window

    @cython.cfunc
    def _move(self, now: cython.longlong) -> cython.void:
        """What lies more than a window back is forgotten."""
        if now < self._moves:
            return
        self._before = self._now if now < self._moves + self._half else _NOTHING
        self._now = _NOTHING
        self._moves += self._half * ((now - self._moves) // self._half + 1) if self._moves else now + self._half

    @cython.ccall
    @cython.boundscheck(False)
    @cython.wraparound(False)
    def add_to(self, sums: array[int], now: cython.longlong) -> cython.void:
        """Add what the window holds to `sums`, which are COUNTS."""
        place: cython.Py_ssize_t
        to: cython.ulonglong[::1] = sums
        self._move(now)
        if len(to) != COUNTS:
            raise ValueError("not as many as there are counts")
        for place in range(len(self._now)):
            to[place] += self._now[place]
        for place in range(len(self._before)):
            to[place] += self._before[place]


_NOTHING = array("I")
_NO_IDS = array("Q")
_NO_TIMES = array("q")


def quantiles(latencies: Iterable[Latency], wanted: Sequence[float], now: int) -> tuple[int, list[int]]:
    """How many were finished in the window, and in ns what each part of them took no longer than; 0 where none was."""
    sums = array("Q", bytes(8 * COUNTS))
    for latency in latencies:
        latency.add_to(sums, now)
    count = sum(sums)
    return count, [_quantile(sums, count * part) for part in wanted]


def _quantile(sums: array[int], wanted: float) -> int:
    seen = 0
    for place, count in enumerate(sums):
        seen += count
        if count and seen >= wanted:
            return _middle(place)
    return 0
