"""Message ids: 16 hex digits on the wire, numbers within. Knows no topic and no log.

Compiled: each FIN carries one.
"""

# What is read from a C array has no type that mypy knows.
# mypy: no-warn-return-any

from __future__ import annotations

from array import array
from typing import Final

try:
    import cython
except ImportError:  # a plain build has no need of Cython
    from penstock import plain as cython  # type: ignore[no-redef]
if cython.compiled:
    from cython.cimports.cpython.array import array as CArray
    from cython.cimports.cpython.array import clone

NO_ID: Final = (1 << 64) - 1  # the number of what is not 16 hex digits: no message is called so
FIN: Final = 21  # bytes of a FIN as everybody writes it

_NO_ID = cython.declare(cython.ulonglong, NO_ID)
_SOME: Final = array("Q")
_FIN = cython.declare(cython.Py_ssize_t, FIN)


# Eight digits are looked at in one number. Added to its bytes, these make the highest bit of each say whether it is at
# least "0", more than "9", at least "a", more than "f". All as C numbers: a large literal would be a Python one.
_FROM_0 = cython.declare(cython.ulonglong, 0x5050505050505050)
_OVER_9 = cython.declare(cython.ulonglong, 0x4646464646464646)
_FROM_A = cython.declare(cython.ulonglong, 0x1F1F1F1F1F1F1F1F)
_OVER_F = cython.declare(cython.ulonglong, 0x1919191919191919)
_HIGHEST = cython.declare(cython.ulonglong, 0x8080808080808080)
_LOWEST = cython.declare(cython.ulonglong, 0x0101010101010101)
_PAIRS = cython.declare(cython.ulonglong, 0x00FF00FF00FF00FF)
_FOURS = cython.declare(cython.ulonglong, 0x0000FFFF0000FFFF)
_EIGHT = cython.declare(cython.ulonglong, 0x00000000FFFFFFFF)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _four(raw: cython.p_const_uchar, at: cython.Py_ssize_t) -> cython.ulonglong:
    top: cython.ulonglong = raw[at]  # widened first: as a C int, `<< 24` turns negative from 0x80 on
    return top << 24 | raw[at + 1] << 16 | raw[at + 2] << 8 | raw[at + 3]


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _half(raw: cython.p_const_uchar, at: cython.Py_ssize_t) -> cython.ulonglong:
    """The number that eight hex digits are, all taken at once; NO_ID where one of them is none."""
    good: cython.ulonglong
    digits: cython.ulonglong = _four(raw, at) << 32 | _four(raw, at + 4)
    good = ((digits + _FROM_0) & ~(digits + _OVER_9)) | ((digits + _FROM_A) & ~(digits + _OVER_F))
    if digits & _HIGHEST or good & _HIGHEST != _HIGHEST:
        return _NO_ID
    digits = (digits & (15 * _LOWEST)) + 9 * ((digits >> 6) & _LOWEST)
    digits = (digits | digits >> 4) & _PAIRS
    digits = (digits | digits >> 8) & _FOURS
    return (digits | digits >> 16) & _EIGHT


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _number(raw: cython.p_const_uchar, at: cython.Py_ssize_t) -> cython.ulonglong:
    high: cython.ulonglong = _half(raw, at)
    low: cython.ulonglong = _half(raw, at + 8)
    return _NO_ID if high == _NO_ID or low == _NO_ID else high << 32 | low


def number(id_: bytes) -> int:
    """The number of an id of 16 bytes; NO_ID where they are not the digits that NSQ writes."""
    if len(id_) != 16:
        raise ValueError("an id has 16 bytes")
    return _number(id_, 0)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _fins(raw: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """How many lines of a FIN's length lie at `at`, one behind the other, that begin and end as one does."""
    count: cython.Py_ssize_t = 0
    while (
        end - at >= _FIN
        and raw[at] == 70  # F
        and raw[at + 1] == 73  # I
        and raw[at + 2] == 78  # N
        and raw[at + 3] == 32
        and raw[at + 20] == 10
    ):
        count += 1
        at += _FIN
    return count


def fins(data: bytearray, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> array[int] | None:
    """The ids of the FINs that lie at `at`, one behind the other; None where the first that lies there is no such."""
    raw: cython.p_const_uchar = data
    place: cython.Py_ssize_t
    count: cython.Py_ssize_t
    id_: cython.ulonglong
    if at < 0 or end > len(data):
        raise ValueError("not inside the data")
    count = _fins(raw, at, end)
    if not count:
        return None
    ids = _ids(count)
    for place in range(count):
        id_ = _number(raw, at + 4)
        if id_ == _NO_ID:
            return ids[:place] if place else None
        _put(ids, place, id_)
        at += _FIN
    return ids


@cython.cfunc
def _ids(count: cython.Py_ssize_t) -> array[int]:
    if cython.compiled:
        return clone(_SOME, count, False)
    return array("Q", bytes(8 * count))


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put(ids: array[int], place: cython.Py_ssize_t, id_: cython.ulonglong) -> cython.void:
    if cython.compiled:
        cython.cast(CArray, ids).data.as_ulonglongs[place] = id_
    else:
        ids[place] = id_
