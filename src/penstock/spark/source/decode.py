"""Copies records into the buffers of Arrow columns: bodies behind each other, ids, times. Knows bytes, and no Arrow.

Compiled where there is a compiler: it touches every message that a query reads. Plain it gives the same, slowly;
`columns` has a quicker way for that.
"""

# What is read from a C array has no type that mypy knows.
# mypy: no-warn-return-any

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.errors import CorruptLog

try:
    import cython
except ImportError:  # a plain build has no need of Cython
    from penstock import plain as cython  # type: ignore[no-redef]
if cython.compiled:
    from cython.cimports.libc.string import memcpy

if TYPE_CHECKING:
    from array import array

    from typing_extensions import Buffer

COMPILED: Final = bool(cython.compiled)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.boundscheck(False)
@cython.wraparound(False)
def _u32(data: cython.const_uchar[::1], at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    top: cython.Py_ssize_t = data[at]  # widened first: as a C int, `<< 24` turns negative from 0x80 on
    return (top << 24) | (data[at + 1] << 16) | (data[at + 2] << 8) | data[at + 3]


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.boundscheck(False)
@cython.wraparound(False)
def _u64(data: cython.const_uchar[::1], at: cython.Py_ssize_t) -> cython.ulonglong:
    high: cython.ulonglong = _u32(data, at)
    low: cython.ulonglong = _u32(data, at + 4)
    return (high << 32) | low


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.boundscheck(False)
@cython.wraparound(False)
def _copy(
    target: cython.uchar[::1],
    to: cython.Py_ssize_t,
    source: cython.const_uchar[::1],
    at: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
) -> cython.void:
    if cython.compiled:
        if size > 0:
            memcpy(cython.address(target[to]), cython.address(source[at]), size)
    else:
        target[to : to + size] = source[at : at + size]


@cython.boundscheck(False)
@cython.wraparound(False)
def bodies(
    data: Buffer, places: array[int], lo: cython.Py_ssize_t, hi: cython.Py_ssize_t, values: Buffer, starts: Buffer
) -> int:
    """Copy the bodies of the records `[lo, hi)` of those that begin at `places`; how many bytes they are.

    `values` gets them one behind the other, `starts` (int32, one more than there are records) where each begins.
    """
    view: cython.const_uchar[::1] = data
    where: cython.uint[::1] = places
    room: cython.uchar[::1] = values
    marks: cython.int[::1] = starts
    at: cython.Py_ssize_t
    size: cython.Py_ssize_t
    number: cython.Py_ssize_t
    filled: cython.Py_ssize_t = 0
    if lo < 0 or hi > len(where) or lo > hi or len(marks) <= hi - lo:
        raise ValueError("no such records")
    for number in range(lo, hi):
        at = where[number]
        size = _u32(view, at) - 26 if at <= len(view) - 30 else -1
        if size < 0 or size > len(view) - at - 30 or size > len(room) - filled:
            raise CorruptLog("a record is not what its size says")
        marks[number - lo] = filled
        _copy(room, filled, view, at + 30, size)
        filled += size
    marks[hi - lo] = filled
    return filled


@cython.boundscheck(False)
@cython.wraparound(False)
def ids(data: Buffer, places: array[int], lo: cython.Py_ssize_t, hi: cython.Py_ssize_t, values: Buffer) -> None:
    """Copy the 16 hex digits of each record's id."""
    view: cython.const_uchar[::1] = data
    where: cython.uint[::1] = places
    room: cython.uchar[::1] = values
    at: cython.Py_ssize_t
    number: cython.Py_ssize_t
    if lo < 0 or hi > len(where) or lo > hi or len(room) < 16 * (hi - lo):
        raise ValueError("no such records")
    for number in range(lo, hi):
        at = where[number]
        if at > len(view) - 30:
            raise CorruptLog("a record is not what its size says")
        _copy(room, 16 * (number - lo), view, at + 14, 16)


@cython.boundscheck(False)
@cython.wraparound(False)
def times(data: Buffer, places: array[int], lo: cython.Py_ssize_t, hi: cython.Py_ssize_t, values: Buffer) -> None:
    """Each record's timestamp in microseconds, which is what Spark's timestamps count."""
    view: cython.const_uchar[::1] = data
    where: cython.uint[::1] = places
    room: cython.longlong[::1] = values
    at: cython.Py_ssize_t
    number: cython.Py_ssize_t
    if lo < 0 or hi > len(where) or lo > hi or len(room) < hi - lo:
        raise ValueError("no such records")
    for number in range(lo, hi):
        at = where[number]
        if at > len(view) - 30:
            raise CorruptLog("a record is not what its size says")
        room[number - lo] = _u64(view, at + 4) // 1000
