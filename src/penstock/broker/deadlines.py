"""The deadlines of what was handed out with one message timeout: they run out in the order in which they came.

    run    until | first | size, holder        24 bytes: `size` messages from offset `first` on, handed out together

A queue in chunks, so that a million messages handed out one by one take 24 MB and no more. It is lazy: a run says what
was so when it came, and what of it is still in flight is asked of its slots. Knows no clock.
"""

# mypy: no-warn-return-any
from __future__ import annotations

from array import array
from collections import Counter, deque
from typing import TYPE_CHECKING, Final

try:
    import cython
except ImportError:  # a plain build has no need of Cython
    from penstock import plain as cython  # type: ignore[no-redef]

from penstock.broker.slots import IN_FLIGHT

if TYPE_CHECKING:
    from penstock.broker.slots import Slots

NEVER: Final = 1 << 62
_FEW: Final = 16  # runs of the first chunk; each has twice as many as the one before it,
_MANY: Final = 1024  # up to these
_TIDY: Final = 64  # runs that may gather before finished ones are looked for


@cython.cclass
class Deadlines:
    """A queue of runs; `slots` says what of them is still in flight."""

    _slots: Slots
    _chunks: deque[array[int]]
    _first: cython.ulonglong[::1]
    _last: cython.ulonglong[::1]
    _at: cython.Py_ssize_t  # where in the first chunk the first run stands
    _stop: cython.Py_ssize_t  # behind the last run, in the last chunk
    _count: cython.Py_ssize_t
    _tidy_at: cython.Py_ssize_t

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._clear()

    def __len__(self) -> int:
        return self._count

    @cython.cfunc
    def _clear(self) -> cython.void:
        self._chunks = deque([array("Q", bytes(24 * _FEW))])
        self._first = self._last = self._chunks[0]
        self._at = self._stop = self._count = 0
        self._tidy_at = _TIDY

    # --- the queue

    def push(
        self, until: cython.ulonglong, first: cython.ulonglong, size: cython.ulonglong, holder: cython.ulonglong
    ) -> None:
        """These run out behind all that are here."""
        if self._count > self._tidy_at:
            self._tidy()
        self._add(until, first, size << 32 | holder)

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.wraparound(False)
    def _add(self, until: cython.ulonglong, first: cython.ulonglong, rest: cython.ulonglong) -> cython.void:
        if self._stop == len(self._last):
            chunk = array("Q", bytes(min(24 * _MANY, 16 * self._stop)))
            self._chunks.append(chunk)
            self._last = chunk
            self._stop = 0
        self._last[self._stop] = until
        self._last[self._stop + 1] = first
        self._last[self._stop + 2] = rest
        self._stop += 3
        self._count += 1

    def push_these(self, until: cython.ulonglong, offsets: cython.ulonglong[::1], holder: cython.ulonglong) -> None:
        """As `push`, for these offsets: a run for each row of neighbours."""
        at: cython.Py_ssize_t
        start: cython.Py_ssize_t = 0
        for at in range(1, len(offsets) + 1):
            if at == len(offsets) or offsets[at] != offsets[at - 1] + 1:
                self.push(until, offsets[start], at - start, holder)
                start = at

    @cython.cfunc
    @cython.inline
    @cython.boundscheck(False)
    @cython.wraparound(False)
    def _drop(self) -> cython.void:
        """The first run goes."""
        self._at += 3
        self._count -= 1
        if not self._count:
            self._at = self._stop = 0
            self._first = self._last
            while len(self._chunks) > 1:
                self._chunks.popleft()
        elif self._at == len(self._first):
            self._chunks.popleft()
            self._first = self._chunks[0]
            self._at = 0

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.wraparound(False)
    def _tidy(self) -> cython.void:
        """Forget finished runs behind one that is not: a message that takes its time keeps no others."""
        chunks, count = self._chunks, self._count
        at: cython.Py_ssize_t = self._at
        _run: cython.Py_ssize_t
        chunk: cython.ulonglong[::1] = self._first
        self._clear()
        for _run in range(count):
            if at == len(chunk):
                chunks.popleft()
                chunk = chunks[0]
                at = 0
            if self._gone(chunk[at], chunk[at + 1], chunk[at + 2] >> 32) < chunk[at + 2] >> 32:
                self._add(chunk[at], chunk[at + 1], chunk[at + 2])
            at += 3
        self._tidy_at = max(_TIDY, 2 * self._count)

    @cython.cfunc
    def _gone(self, until: cython.ulonglong, first: cython.ulonglong, size: cython.ulonglong) -> cython.ulonglong:
        """How many at the front of a run are not in flight until then any more."""
        gone: cython.ulonglong = self._slots.gone(first, size, IN_FLIGHT, until)
        return gone

    # --- time

    @cython.boundscheck(False)
    @cython.wraparound(False)
    def next_time(self) -> int:
        """When the first of these runs out that is still in flight; NEVER. Forgets those before it."""
        size: cython.ulonglong
        gone: cython.ulonglong
        while self._count:
            size = self._first[self._at + 2] >> 32
            gone = self._gone(self._first[self._at], self._first[self._at + 1], size)
            if gone < size:
                self._first[self._at + 1] += gone
                self._first[self._at + 2] -= gone << 32
                return self._first[self._at]
            self._drop()
        return NEVER

    @cython.boundscheck(False)
    @cython.wraparound(False)
    def expire(self, now: cython.ulonglong, expired: Counter[int]) -> list[array[int]]:
        """Those whose time ran out are READY now; which, and into `expired` how many of each holder."""
        found = []
        while self._count and self._first[self._at] <= now:
            until, first, rest = self._first[self._at], self._first[self._at + 1], self._first[self._at + 2]
            self._drop()
            woken = self._slots.wake(first, rest >> 32, IN_FLIGHT, until)
            if woken:
                found.append(woken)
                expired[rest & 0xFFFFFFFF] += len(woken)
        return found
