"""Copies bodies out of an Arrow column into an MPUB's body, each behind its size. Knows bytes, and no Arrow.

    out      size u32 | body | size u32 | body ...

Compiled where there is a compiler: it touches every message that a query publishes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    import cython
except ImportError:  # a plain build has no need of Cython
    from penstock import plain as cython  # type: ignore[no-redef]
if cython.compiled:
    from cython.cimports.libc.string import memcpy

if TYPE_CHECKING:
    from typing_extensions import Buffer


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.boundscheck(False)
@cython.wraparound(False)
def _put(
    out: cython.uchar[::1],
    at: cython.Py_ssize_t,
    values: cython.const_uchar[::1],
    start: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
) -> cython.void:
    out[at] = (size >> 24) & 0xFF
    out[at + 1] = (size >> 16) & 0xFF
    out[at + 2] = (size >> 8) & 0xFF
    out[at + 3] = size & 0xFF
    if cython.compiled:
        if size > 0:
            memcpy(cython.address(out[at + 4]), cython.address(values[start]), size)
    else:
        out[at + 4 : at + 4 + size] = values[start : start + size]


@cython.boundscheck(False)
@cython.wraparound(False)
def frame(
    out: Buffer, at: cython.Py_ssize_t, values: Buffer, starts: Buffer, row: cython.Py_ssize_t, stop: cython.Py_ssize_t
) -> tuple[int, int]:
    """Copy the bodies of the rows `[row, stop)`, as many as there is room for; (the next row, where it would go).

    `starts` (int32, one more than there are rows) says where in `values` each begins.
    """
    room: cython.uchar[::1] = out
    source: cython.const_uchar[::1] = values
    marks: cython.const_int[::1] = starts
    end: cython.Py_ssize_t = len(room)
    last: cython.Py_ssize_t = len(source)
    start: cython.Py_ssize_t
    size: cython.Py_ssize_t
    if at < 0 or row < 0 or stop >= len(marks):
        raise ValueError("no such rows")
    while row < stop:
        start = marks[row]
        size = marks[row + 1] - start
        if start < 0 or size < 0 or size > last - start:
            raise ValueError("a row lies outside the column")
        if size > end - at - 4:
            break
        _put(room, at, source, start, size)
        at += 4 + size
        row += 1
    return row, at
