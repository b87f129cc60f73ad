"""The order of deferred entries: when each is due, sorted by it, dealt out by it. Knows bytes; knows no file, no clock.

An entry is a record whose id field says in 16 hex digits at which nanosecond it is due.

Compiled where there is a compiler: everything here runs once per entry.
"""

# What is read from a C array has no type that mypy knows.
# mypy: no-warn-return-any

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

try:
    import cython
except ImportError:  # a plain build has no need of Cython
    from penstock import plain as cython  # type: ignore[no-redef]

if TYPE_CHECKING:
    from typing_extensions import Buffer


@cython.boundscheck(False)
@cython.wraparound(False)
def due_times(source: Buffer, places: array[int]) -> array[int]:
    """When each of the entries that begin at `places` in `source` is due."""
    view: cython.const_uchar[::1] = source
    where: cython.uint[::1] = places
    found = array("Q", bytes(8 * len(places)))
    fill: cython.ulonglong[::1] = found
    number: cython.Py_ssize_t
    place: cython.Py_ssize_t
    at: cython.Py_ssize_t
    due: cython.ulonglong
    digit: cython.uint
    for number in range(len(where)):
        at = where[number]
        if at > len(view) - 30:
            raise ValueError("no such entry")
        due = 0
        for place in range(at + 14, at + 30):
            digit = view[place]
            due = (due << 4) | (((digit & 15) + 9 * (digit >> 6)) & 15)  # "a" is 0x61
        fill[number] = due
    return found


def by_due(dues: array[int]) -> array[int] | None:
    """The numbers of the entries in order of due time, equal ones as they stand; None where all stand in order."""
    due: cython.ulonglong[::1] = dues
    if _in_order(due):
        return None
    order, other = array("I", range(len(dues))), array("I", bytes(4 * len(dues)))
    tally = array("I", bytes(4 * 256))
    low: cython.ulonglong = min(dues)
    spread: cython.ulonglong = max(dues) - low
    shift: cython.int = 0
    while shift < 64 and (spread >> shift) > 0:
        _by_digit(due, low, shift, order, other, tally)
        order, other = other, order
        shift += 8
    return order


@cython.cfunc
@cython.boundscheck(False)
@cython.wraparound(False)
def _in_order(due: cython.ulonglong[::1]) -> bool:
    number: cython.Py_ssize_t
    for number in range(1, len(due)):  # noqa: SIM110 - a C loop
        if due[number] < due[number - 1]:
            return False
    return True


@cython.cfunc
@cython.boundscheck(False)
@cython.wraparound(False)
def _by_digit(
    due: cython.ulonglong[::1],
    low: cython.ulonglong,
    shift: cython.int,
    source: cython.uint[::1],
    target: cython.uint[::1],
    tally: cython.uint[::1],
) -> cython.void:
    """Sort by the byte at `shift` of what a due time is above `low`; what has the same byte keeps its order."""
    number: cython.Py_ssize_t
    digit: cython.Py_ssize_t
    here: cython.uint
    at: cython.uint = 0
    for digit in range(256):
        tally[digit] = 0
    for number in range(len(due)):
        tally[((due[number] - low) >> shift) & 255] += 1
    for digit in range(256):
        here = tally[digit]
        tally[digit] = at
        at += here
    for number in range(len(due)):
        here = source[number]
        digit = ((due[here] - low) >> shift) & 255
        target[tally[digit]] = here
        tally[digit] += 1


@cython.boundscheck(False)
@cython.wraparound(False)
def deal(dues: array[int], places: array[int], bounds: array[int]) -> tuple[array[int], array[int]]:
    """The places sorted out by the ranges that `bounds` divide, else in the order they had; and where each range ends.

    The first range is what is due before the first bound, the last one what is due at the last bound or later.
    """
    count: cython.Py_ssize_t = len(dues)
    ranges: cython.Py_ssize_t = len(bounds) + 1
    if len(places) != count:
        raise ValueError("a due time for each place")
    dealt = array("I", bytes(4 * count))
    chosen = array("I", bytes(4 * count))
    ends = array("I", bytes(4 * ranges))
    due: cython.ulonglong[::1] = dues
    place: cython.uint[::1] = places
    bound: cython.ulonglong[::1] = bounds
    target: cython.uint[::1] = dealt
    choice: cython.uint[::1] = chosen
    end: cython.uint[::1] = ends
    number: cython.Py_ssize_t
    low: cython.Py_ssize_t
    high: cython.Py_ssize_t
    middle: cython.Py_ssize_t
    here: cython.uint
    at: cython.uint = 0
    for number in range(count):
        low, high = 0, ranges - 1
        while low < high:
            middle = (low + high) // 2
            if due[number] < bound[middle]:
                high = middle
            else:
                low = middle + 1
        choice[number] = low
        end[low] += 1
    for low in range(ranges):
        here = end[low]
        end[low] = at
        at += here
    for number in range(count):
        low = choice[number]
        target[end[low]] = place[number]
        end[low] += 1
    return dealt, ends


@cython.boundscheck(False)
@cython.wraparound(False)
def fitting(
    source: Buffer, places: array[int], start: cython.Py_ssize_t, stop: cython.Py_ssize_t, room: cython.longlong
) -> tuple[int, int]:
    """Up to which number below `stop` the entries from `start` on fit `room` bytes, one at least; and their bytes."""
    view: cython.const_uchar[::1] = source
    where: cython.uint[::1] = places
    size: cython.longlong = 0
    length: cython.longlong
    number: cython.Py_ssize_t
    at: cython.Py_ssize_t
    if start < 0 or stop > len(where):
        raise ValueError("no such entries")
    for number in range(start, stop):
        at = where[number]
        if at > len(view) - 30:
            raise ValueError("no such entry")
        length = view[at]
        length = ((length << 24) | (view[at + 1] << 16) | (view[at + 2] << 8) | view[at + 3]) + 4
        if number > start and size + length > room:
            return number, size
        size += length
    return stop, size
