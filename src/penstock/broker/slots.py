"""The unfinished messages of a channel, a slot each: who holds it since when, until when, how often it was tried.

Knows offsets and numbers; no bodies, no clock and no policy: `unfinished.py` says what becomes of whom.

    key (offset + 1) | state | attempts | holder | since | until          31 bytes, in parallel arrays
    packed, for the journal:   offset u64 | due u48 | attempts u16        big-endian; due is 0 in flight, 1 ready, else
                                                                          the wall clock's milliseconds, rounded up

A hash table with open addressing. Eight neighbouring offsets share a line of it, so that the dense window of what is
in flight lies densely; the lines are spread, so that the few that remain of thousands of millions find their place.
What is deleted leaves no mark: those behind it move up.

Compiled: each delivery and each finish of a message comes here, thousands of them a call.
"""

# mypy: no-warn-return-any
from __future__ import annotations

from array import array
from bisect import insort
from typing import Final

try:
    import cython
except ImportError:  # a plain build has no need of Cython
    from penstock import plain as cython  # type: ignore[no-redef]

IN_FLIGHT: Final = 1
READY: Final = 2  # to be delivered again
DELAYED: Final = 3  # to be delivered again, later

NOBODY: Final = 0  # holders count from 1
PAGE_BITS: Final = 10  # offsets of one page, the unit in which changes are remembered

# The same as C numbers: a Python one would be looked up each time.
_IN_FLIGHT = cython.declare(cython.uchar, IN_FLIGHT)
_READY = cython.declare(cython.uchar, READY)
_DELAYED = cython.declare(cython.uchar, DELAYED)
_MS = cython.declare(cython.longlong, 10**6)
_FINE = cython.declare(cython.ulonglong, 1024)  # stretches that offsets are counted in
_PAGE_BITS = cython.declare(cython.int, PAGE_BITS)
_SMALLEST = cython.declare(cython.Py_ssize_t, 64)
_MAX_ATTEMPTS = cython.declare(cython.uint, 0xFFFF)
_SPREAD = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
_ALL = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.boundscheck(False)
@cython.wraparound(False)
def _put_u64(out: cython.uchar[::1], at: cython.Py_ssize_t, value: cython.ulonglong) -> cython.void:
    number: cython.Py_ssize_t
    for number in range(8):
        out[at + number] = (value >> (56 - 8 * number)) & 0xFF


@cython.cclass
class Slots:
    """Offset -> slot. An offset that is not there, or not held by who says so, is answered, not raised."""

    live = cython.declare(cython.Py_ssize_t, visibility="readonly")
    in_flight = cython.declare(cython.Py_ssize_t, visibility="readonly")
    _mask: cython.Py_ssize_t
    _keys: cython.ulonglong[::1]
    _since: cython.longlong[::1]
    _until: cython.longlong[::1]
    _holders: cython.uint[::1]
    _attempts: cython.ushort[::1]
    _states: cython.uchar[::1]
    _counts: cython.uint[::1]
    _recent: cython.ulonglong[::1]
    _changed: set[int]

    def __init__(self) -> None:
        self.live = 0
        self.in_flight = 0
        self._changed = set()  # pages
        self._recent = array("Q", bytes(8 * 16))  # pages (+ 1) that are surely in `_changed`
        self._counts = array("I", bytes(4 * 8))  # in flight, by holder
        self._allocate(0)

    def __len__(self) -> int:
        return self.live

    def __contains__(self, offset: cython.ulonglong) -> bool:
        return self._find(offset) >= 0

    # --- the table

    @cython.cfunc
    def _allocate(self, size: cython.Py_ssize_t) -> cython.void:
        self._mask = size - 1
        size = max(size, 1)
        self._keys = array("Q", bytes(8 * size))
        self._since = array("q", bytes(8 * size))
        self._until = array("q", bytes(8 * size))
        self._holders = array("I", bytes(4 * size))
        self._attempts = array("H", bytes(2 * size))
        self._states = array("B", bytes(size))

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _home(self, offset: cython.ulonglong) -> cython.Py_ssize_t:
        spread: cython.ulonglong = ((offset >> 3) * _SPREAD) & _ALL
        home: cython.Py_ssize_t = ((spread >> 35) << 3) | (offset & 7)
        return home & self._mask

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    @cython.boundscheck(False)
    @cython.wraparound(False)
    def _find(self, offset: cython.ulonglong) -> cython.Py_ssize_t:
        at: cython.Py_ssize_t
        if self.live == 0:
            return -1
        at = self._home(offset)
        while self._keys[at]:
            if self._keys[at] == offset + 1:
                return at
            at = (at + 1) & self._mask
        return -1

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.wraparound(False)
    def _make(self, offset: cython.ulonglong) -> cython.Py_ssize_t:
        """The slot of an offset, new and empty where there was none."""
        at: cython.Py_ssize_t = self._find(offset)
        if at >= 0:
            return at
        if 2 * (self.live + 1) > self._mask + 1:
            self._resize(max(_SMALLEST, 2 * (self._mask + 1)))
        at = self._home(offset)
        while self._keys[at]:
            at = (at + 1) & self._mask
        self._keys[at] = offset + 1
        self._attempts[at] = 0
        self._holders[at] = 0
        self._states[at] = 0
        self.live += 1
        return at

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.wraparound(False)
    def _resize(self, size: cython.Py_ssize_t) -> cython.void:
        old: cython.Py_ssize_t
        at: cython.Py_ssize_t
        slots: cython.Py_ssize_t = self._mask + 1
        keys: cython.ulonglong[::1] = self._keys
        since: cython.longlong[::1] = self._since
        until: cython.longlong[::1] = self._until
        holders: cython.uint[::1] = self._holders
        attempts: cython.ushort[::1] = self._attempts
        states: cython.uchar[::1] = self._states
        self._allocate(size)
        for old in range(slots):
            if keys[old]:
                at = self._home(keys[old] - 1)
                while self._keys[at]:
                    at = (at + 1) & self._mask
                self._keys[at] = keys[old]
                self._since[at] = since[old]
                self._until[at] = until[old]
                self._holders[at] = holders[old]
                self._attempts[at] = attempts[old]
                self._states[at] = states[old]

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.wraparound(False)
    def _remove(self, hole: cython.Py_ssize_t) -> cython.void:
        """Empty the slot; those behind it that would not be found any more move up."""
        at: cython.Py_ssize_t = hole
        home: cython.Py_ssize_t
        self.live -= 1
        while True:
            at = (at + 1) & self._mask
            if not self._keys[at]:
                break
            home = self._home(self._keys[at] - 1)
            if ((at - home) & self._mask) < ((at - hole) & self._mask):
                continue
            self._keys[hole] = self._keys[at]
            self._since[hole] = self._since[at]
            self._until[hole] = self._until[at]
            self._holders[hole] = self._holders[at]
            self._attempts[hole] = self._attempts[at]
            self._states[hole] = self._states[at]
            hole = at
        self._keys[hole] = 0

    def shrink(self) -> None:
        """Give memory back after a crowd; now and then, not after each finish."""
        size: cython.Py_ssize_t = self._mask + 1
        if size > _SMALLEST and 16 * self.live < size:
            size = _SMALLEST
            while size < 4 * self.live:
                size *= 2
            self._resize(size if self.live else 0)

    @cython.cfunc
    @cython.inline
    @cython.boundscheck(False)
    @cython.wraparound(False)
    def _mark(self, offset: cython.ulonglong) -> cython.void:
        page: cython.ulonglong = offset >> _PAGE_BITS
        if self._recent[page & 15] != page + 1:
            self._recent[page & 15] = page + 1
            self._changed.add(page)

    # --- holders

    def in_flight_of(self, holder: cython.Py_ssize_t) -> int:
        return self._counts[holder] if holder < len(self._counts) else 0

    @cython.cfunc
    def _held(self, holder: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.void:
        if holder >= len(self._counts):
            more = array("I", bytes(4 * max(2 * len(self._counts), holder + 1)))
            counts = memoryview(more)
            counts[: len(self._counts)] = memoryview(self._counts)
            self._counts = more
        self._counts[holder] += count
        self.in_flight += count

    @cython.cfunc
    @cython.inline
    @cython.boundscheck(False)
    @cython.wraparound(False)
    def _let_go(self, at: cython.Py_ssize_t) -> cython.void:
        """The slot is not in flight any more."""
        if self._states[at] == _IN_FLIGHT:
            self._counts[self._holders[at]] -= 1
            self.in_flight -= 1
        self._holders[at] = 0

    # --- what happens to messages

    @cython.boundscheck(False)
    @cython.wraparound(False)
    def take(
        self,
        first: cython.ulonglong,
        count: cython.Py_ssize_t,
        holder: cython.uint,
        now: cython.longlong,
        until: cython.longlong,
    ) -> None:
        """Messages that were never handed out go to a holder."""
        number: cython.Py_ssize_t
        at: cython.Py_ssize_t
        while 2 * (self.live + count) > self._mask + 1:
            self._resize(max(_SMALLEST, 2 * (self._mask + 1)))
        self._held(holder, count)
        for number in range(count):
            at = self._make(first + number)
            self._states[at] = _IN_FLIGHT
            self._attempts[at] = 1
            self._holders[at] = holder
            self._since[at] = now
            self._until[at] = until
            self._mark(first + number)

    @cython.boundscheck(False)
    @cython.wraparound(False)
    def take_again(
        self,
        offsets: cython.ulonglong[::1],
        holder: cython.uint,
        now: cython.longlong,
        until: cython.longlong,
    ) -> array[int]:
        """Ready messages go to a holder once more; how often each was tried now, 0 for one that was not ready."""
        number: cython.Py_ssize_t
        at: cython.Py_ssize_t
        taken: cython.Py_ssize_t = 0
        tried = array("H", bytes(2 * len(offsets)))
        attempts: cython.ushort[::1] = tried
        for number in range(len(offsets)):
            at = self._find(offsets[number])
            if at < 0 or self._states[at] != _READY:
                continue
            taken += 1
            if self._attempts[at] < _MAX_ATTEMPTS:
                self._attempts[at] += 1
            attempts[number] = self._attempts[at]
            self._states[at] = _IN_FLIGHT
            self._holders[at] = holder
            self._since[at] = now
            self._until[at] = until
            self._mark(offsets[number])
        self._held(holder, taken)
        return tried

    @cython.boundscheck(False)
    @cython.wraparound(False)
    def finish(
        self,
        ids: cython.ulonglong[::1],
        start: cython.Py_ssize_t,
        stop: cython.Py_ssize_t,
        base: cython.ulonglong,
        holder: cython.uint,
    ) -> list[int] | None:
        """The messages of `ids[start:stop]` are finished; the places of those that the holder does not have."""
        place: cython.Py_ssize_t
        at: cython.Py_ssize_t
        offset: cython.ulonglong
        failed: list[int] | None = None
        if start < 0 or stop > len(ids):
            raise ValueError("not inside the ids")
        for place in range(start, stop):
            at = -1
            if ids[place] >= base:
                offset = ids[place] - base
                at = self._find(offset)
            if at < 0 or self._states[at] != _IN_FLIGHT or self._holders[at] != holder:
                failed = failed or []
                failed.append(place)
                continue
            self._counts[holder] -= 1
            self.in_flight -= 1
            self._remove(at)
            self._mark(offset)
        return failed

    @cython.boundscheck(False)
    @cython.wraparound(False)
    def requeue(
        self, offset: cython.ulonglong, holder: cython.uint, state: cython.uchar, until: cython.longlong
    ) -> bool:
        """A holder gives a message back: READY, or DELAYED `until`. False where it does not have it."""
        at: cython.Py_ssize_t = self._find(offset)
        if at < 0 or self._states[at] != _IN_FLIGHT or self._holders[at] != holder:
            return False
        self._let_go(at)
        self._states[at] = state
        self._until[at] = until
        self._mark(offset)
        return True

    @cython.boundscheck(False)
    @cython.wraparound(False)
    def touch(
        self, offset: cython.ulonglong, holder: cython.uint, until: cython.longlong, most: cython.longlong
    ) -> int:
        """A holder wants more time, no more than `most` since it was given the message; until when, or -1."""
        at: cython.Py_ssize_t = self._find(offset)
        if at < 0 or self._states[at] != _IN_FLIGHT or self._holders[at] != holder:
            return -1
        self._until[at] = min(until, self._since[at] + most)
        return self._until[at]

    @cython.boundscheck(False)
    @cython.wraparound(False)
    def wake(
        self, first: cython.ulonglong, count: cython.Py_ssize_t, state: cython.uchar, until: cython.longlong
    ) -> array[int]:
        """Of `count` messages from `first` on, those that are in this state until just then: READY now. Which."""
        number: cython.Py_ssize_t
        at: cython.Py_ssize_t
        found = array("Q")
        for number in range(count):
            at = self._find(first + number)
            if at >= 0 and self._states[at] == state and self._until[at] == until:
                self._let_go(at)
                self._states[at] = _READY
                self._mark(first + number)
                found.append(first + number)
        return found

    @cython.boundscheck(False)
    @cython.wraparound(False)
    def gone(
        self, first: cython.ulonglong, count: cython.Py_ssize_t, state: cython.uchar, until: cython.longlong
    ) -> int:
        """How many messages from `first` on are not in this state until just then any more, before one that is."""
        number: cython.Py_ssize_t
        at: cython.Py_ssize_t
        for number in range(count):
            at = self._find(first + number)
            if at >= 0 and self._states[at] == state and self._until[at] == until:
                return number
        return count

    @cython.boundscheck(False)
    @cython.wraparound(False)
    def wake_these(self, offsets: cython.ulonglong[::1], state: cython.uchar, until: cython.longlong) -> array[int]:
        """As `wake`, for these offsets."""
        number: cython.Py_ssize_t
        at: cython.Py_ssize_t
        found = array("Q")
        for number in range(len(offsets)):
            at = self._find(offsets[number])
            if at >= 0 and self._states[at] == state and self._until[at] == until:
                self._let_go(at)
                self._states[at] = _READY
                self._mark(offsets[number])
                found.append(offsets[number])
        return found

    @cython.boundscheck(False)
    @cython.wraparound(False)
    def take_back(self, first: cython.ulonglong, count: cython.Py_ssize_t, holder: cython.uint) -> array[int]:
        """Messages that never left the process are READY again, as if this attempt had not been. Which."""
        number: cython.Py_ssize_t
        at: cython.Py_ssize_t
        found = array("Q")
        for number in range(count):
            at = self._find(first + number)
            if at >= 0 and self._states[at] == _IN_FLIGHT and self._holders[at] == holder:
                self._let_go(at)
                self._states[at] = _READY
                self._attempts[at] -= 1
                self._mark(first + number)
                found.append(first + number)
        return found

    @cython.boundscheck(False)
    @cython.wraparound(False)
    def held_by(self, holder: cython.uint) -> list[tuple[int, int]]:
        """(offset, attempts) of all that the holder has, in order; looks at every slot."""
        at: cython.Py_ssize_t
        found: list[tuple[int, int]] = []
        for at in range(self._mask + 1):
            if self._keys[at] and self._states[at] == _IN_FLIGHT and self._holders[at] == holder:
                found.append((self._keys[at] - 1, self._attempts[at]))  # noqa: PERF401 - C loops
        found.sort()
        return found

    # --- what is remembered

    @cython.boundscheck(False)
    @cython.wraparound(False)
    def lowest(self, otherwise: cython.ulonglong) -> int:
        """The first unfinished offset; looks at every slot."""
        at: cython.Py_ssize_t
        low: cython.ulonglong = otherwise
        if self.live:
            for at in range(self._mask + 1):
                if self._keys[at] and self._keys[at] - 1 < low:
                    low = self._keys[at] - 1
        return low

    def changed(self) -> list[int]:
        """The pages in which anything changed since this was asked last, in order."""
        pages = sorted(self._changed)
        self._changed = set()
        self._recent = array("Q", bytes(8 * 16))
        return pages

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.wraparound(False)
    def _between(self, first: cython.ulonglong, stop: cython.ulonglong) -> array[int]:
        """The unfinished offsets in `[first, stop)`, in order: looked up one by one, or picked out of all slots."""
        at: cython.Py_ssize_t
        offset: cython.ulonglong
        count: cython.Py_ssize_t = 0
        slots: cython.ulonglong = self._mask + 1
        if not self.live or stop <= first:
            return array("Q")
        spread: cython.bint = stop - first > slots
        if spread:
            for at in range(self._mask + 1):
                count += first < self._keys[at] <= stop
        else:
            for offset in range(first, stop):
                count += self._find(offset) >= 0
        found = array("Q", bytes(8 * count))
        offsets: cython.ulonglong[::1] = found
        count = 0
        if spread:
            for at in range(self._mask + 1):
                if first < self._keys[at] <= stop:
                    offsets[count] = self._keys[at] - 1
                    count += 1
            return array("Q", sorted(found))
        for offset in range(first, stop):
            if self._find(offset) >= 0:
                offsets[count] = offset
                count += 1
        return found

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.wraparound(False)
    def _in_pages(self, pages: list[int], stop: cython.ulonglong) -> array[int]:
        """The unfinished offsets below `stop` in these pages, which are in order."""
        at: cython.Py_ssize_t
        found = array("Q")
        if len(pages) << _PAGE_BITS <= self._mask:
            for page in pages:
                found += self._between(page << _PAGE_BITS, min((page + 1) << _PAGE_BITS, stop))
            return found
        wanted = set(pages)
        for at in range(self._mask + 1):
            if 0 < self._keys[at] <= stop and (self._keys[at] - 1) >> _PAGE_BITS in wanted:
                found.append(self._keys[at] - 1)
        return array("Q", sorted(found))

    def messages(self, first: cython.ulonglong, stop: cython.ulonglong) -> list[tuple[int, int, int, int]]:
        """(offset, state, attempts, until) of what is unfinished in `[first, stop)`, in order."""
        at: cython.Py_ssize_t
        found: list[tuple[int, int, int, int]] = []
        for offset in self._between(first, stop):
            at = self._find(offset)
            found.append((offset, self._states[at], self._attempts[at], self._until[at]))
        return found

    def packed(self, first: cython.ulonglong, stop: cython.ulonglong, shift: cython.longlong) -> bytes:
        """What is unfinished in `[first, stop)`, packed; `shift` is from the monotonic clock to the wall's."""
        return self._packed(self._between(first, stop), shift)

    def packed_pages(self, pages: list[int], stop: cython.ulonglong, shift: cython.longlong) -> bytes:
        """As `packed`, for what lies in these pages, which are in order, and below `stop`."""
        return self._packed(self._in_pages(pages, stop), shift)

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.wraparound(False)
    def _packed(self, offsets: cython.ulonglong[::1], shift: cython.longlong) -> bytes:
        number: cython.Py_ssize_t
        at: cython.Py_ssize_t
        due: cython.longlong
        data = bytearray(16 * len(offsets))
        out: cython.uchar[::1] = data
        for number in range(len(offsets)):
            at = self._find(offsets[number])
            due = self._states[at] - 1  # in flight, ready
            if self._states[at] == _DELAYED:
                due = max(2, (self._until[at] + shift + _MS - 1) // _MS)
            _put_u64(out, 16 * number, offsets[number])
            _put_u64(out, 16 * number + 8, due << 16 | self._attempts[at])
        return bytes(data)

    @cython.boundscheck(False)
    @cython.wraparound(False)
    def narrow(self, first: cython.ulonglong, stop: cython.ulonglong, limit: cython.Py_ssize_t) -> int:
        """An offset up to which about `limit` are unfinished from `first` on, twice as many at most; else `stop`."""
        at: cython.Py_ssize_t
        bucket: cython.ulonglong
        below: cython.ulonglong
        shift: cython.int
        wanted: cython.ulonglong = limit
        spare: cython.ulonglong = limit
        low: cython.ulonglong = first
        high: cython.ulonglong = stop
        if self.live <= limit or stop <= first:
            return stop
        while True:
            shift = 0
            while (high - 1 - low) >> shift >= _FINE:
                shift += 1
            counts = array("Q", bytes(8 * _FINE))
            count: cython.ulonglong[::1] = counts
            for at in range(self._mask + 1):
                if low < self._keys[at] <= high:
                    count[(self._keys[at] - 1 - low) >> shift] += 1
            below = 0
            bucket = 0
            while bucket < _FINE and below + count[bucket] < wanted:
                below += count[bucket]
                bucket += 1
            if bucket == _FINE:
                return stop
            high = min(high, low + ((bucket + 1) << shift))
            if below + count[bucket] <= wanted + spare:
                return high
            wanted -= below
            low += bucket << shift

    @cython.boundscheck(False)
    @cython.wraparound(False)
    def first(self, state: cython.uchar, limit: cython.Py_ssize_t) -> list[tuple[int, int, int]]:
        """(offset, attempts, until) of the first `limit` messages in this state, by offset; looks at every slot."""
        at: cython.Py_ssize_t
        bound: cython.ulonglong = _ALL
        found: list[tuple[int, int, int]] = []
        for at in range(self._mask + 1):
            if self._keys[at] and self._states[at] == state and self._keys[at] <= bound:
                insort(found, (self._keys[at] - 1, self._attempts[at], self._until[at]))
                if len(found) > limit:
                    bound = found.pop()[0]
        return found

    @cython.boundscheck(False)
    @cython.wraparound(False)
    def put(
        self, offset: cython.ulonglong, state: cython.uchar, attempts: cython.ushort, until: cython.longlong
    ) -> None:
        """As it was when it was remembered: READY or DELAYED."""
        at: cython.Py_ssize_t = self._make(offset)
        self._let_go(at)
        self._states[at] = state
        self._attempts[at] = attempts
        self._until[at] = until

    def clear(self) -> None:
        """Everything is forgotten; what changed by it is the caller's to remember."""
        self.live = 0
        self.in_flight = 0
        self._counts = array("I", bytes(4 * len(self._counts)))
        self._changed = set()
        self._recent = array("Q", bytes(8 * 16))
        self._allocate(0)
