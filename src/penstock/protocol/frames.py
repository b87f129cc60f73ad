"""What nsqd sends to a V2 client: answers, errors and messages. Knows no connection and no channel.

    frame     size u32 | type u32 | data                                     type 0: answer, 1: error, 2: message
    message   timestamp u64 | attempts u16 | id, 16 hex digits | body        as in a record, behind the record's size

A frame's size counts what follows it. Messages are copied from the log's blocks, whole ones of them into one piece.

Compiled: each message that is delivered comes by here.
"""

# What is read from a C array has no type that mypy knows.
# mypy: no-warn-return-any

from __future__ import annotations

import struct
from array import array
from typing import TYPE_CHECKING, Final

from penstock.protocol.batch import positions

try:
    import cython
except ImportError:  # a plain build has no need of Cython
    from penstock import plain as cython  # type: ignore[no-redef]
if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
    from cython.cimports.libc.string import memcpy

if TYPE_CHECKING:
    from typing_extensions import Buffer

_HEAD: Final = struct.Struct(">II")


def answer(data: bytes) -> bytes:
    return _HEAD.pack(len(data) + 4, 0) + data


def error(data: bytes) -> bytes:
    return _HEAD.pack(len(data) + 4, 1) + data


OK: Final = answer(b"OK")
CLOSE_WAIT: Final = answer(b"CLOSE_WAIT")
HEARTBEAT: Final = answer(b"_heartbeat_")


@cython.cclass
class Messages:
    """The messages of a block, whole and good batches one behind the other; `first` is the offset of the first."""

    first = cython.declare(cython.ulonglong, visibility="readonly")
    next = cython.declare(cython.ulonglong, visibility="readonly")  # the offset behind the last
    _data: cython.const_uchar[::1]
    _places: cython.uint[::1]

    def __init__(self, first: cython.ulonglong, data: Buffer) -> None:
        self._data = data
        places = positions(data, 0, len(self._data))
        self._places = places
        self.first = first
        self.next = first + len(places)

    @cython.boundscheck(False)
    @cython.wraparound(False)
    def new(self, offset: cython.ulonglong, count: cython.Py_ssize_t, most: cython.Py_ssize_t) -> tuple[bytes, int]:
        """Frames of up to `count` messages from `offset` on, each its first attempt, and how many they are.

        They are no more than `most` bytes, but one at least where the block has it.
        """
        begin: cython.Py_ssize_t
        stop: cython.Py_ssize_t
        place: cython.Py_ssize_t
        size: cython.Py_ssize_t = 0
        more: cython.Py_ssize_t
        if not self.first <= offset < self.next or count <= 0:
            return b"", 0
        begin = stop = offset - self.first
        count = min(count, len(self._places) - begin)
        while stop - begin < count:
            more = _frame_size(self._data, self._places[stop])
            if stop > begin and size + more > most:
                break
            size += more
            stop += 1
        room = _room(size)
        frames: cython.p_uchar = _bytes(room)
        size = 0
        for place in range(begin, stop):
            size = _put(frames, size, self._data, self._places[place], 1)
        return bytes(room), stop - begin

    @cython.boundscheck(False)
    @cython.wraparound(False)
    def again(
        self, offsets: array[int], attempts: array[int], start: cython.Py_ssize_t, most: cython.Py_ssize_t
    ) -> tuple[bytes, int]:
        """Frames of the messages at `offsets[start:]`, each with its attempts, and how many of those are done.

        It ends where `most` bytes would be exceeded (after one at least), or before an offset of another block. What
        has no attempts is passed over.
        """
        which: cython.ulonglong[::1] = offsets
        tries: cython.ushort[::1] = attempts
        stop: cython.Py_ssize_t = start
        number: cython.Py_ssize_t
        size: cython.Py_ssize_t = 0
        more: cython.Py_ssize_t
        if start < 0 or len(tries) != len(which):
            raise ValueError("not as many attempts as offsets")
        while stop < len(which) and self.first <= which[stop] < self.next:
            more = _frame_size(self._data, self._places[which[stop] - self.first]) if tries[stop] else 0
            if size and size + more > most:
                break
            size += more
            stop += 1
        room = _room(size)
        frames: cython.p_uchar = _bytes(room)
        size = 0
        for number in range(start, stop):
            if tries[number]:
                size = _put(frames, size, self._data, self._places[which[number] - self.first], tries[number])
        return bytes(room), max(stop - start, 0)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.boundscheck(False)
@cython.wraparound(False)
def _frame_size(data: cython.const_uchar[::1], at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The whole size of the frame for the record at `at`."""
    size: cython.Py_ssize_t = data[at]  # widened first: as a C int, `<< 24` turns negative from 0x80 on
    return ((size << 24) | (data[at + 1] << 16) | (data[at + 2] << 8) | data[at + 3]) + 8


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.boundscheck(False)
@cython.wraparound(False)
def _put(
    frames: cython.p_uchar,
    to: cython.Py_ssize_t,
    data: cython.const_uchar[::1],
    at: cython.Py_ssize_t,
    attempts: cython.uint,
) -> cython.Py_ssize_t:
    """Write the frame of the record at `at`; where the next one goes. A record is a message behind its size."""
    size: cython.Py_ssize_t = _frame_size(data, at) - 4
    frames[to] = (size >> 24) & 0xFF
    frames[to + 1] = (size >> 16) & 0xFF
    frames[to + 2] = (size >> 8) & 0xFF
    frames[to + 3] = size & 0xFF
    frames[to + 4] = frames[to + 5] = frames[to + 6] = 0
    frames[to + 7] = 2
    if cython.compiled:
        memcpy(frames + to + 8, cython.address(data[at + 4]), size - 4)
    else:
        frames[to + 8 : to + 4 + size] = data[at + 4 : at + size]
    frames[to + 16] = (attempts >> 8) & 0xFF
    frames[to + 17] = attempts & 0xFF
    return to + 4 + size


@cython.cfunc
def _room(size: cython.Py_ssize_t) -> bytes | bytearray:
    """Bytes to be written before anybody sees them."""
    if cython.compiled:
        return PyBytes_FromStringAndSize(cython.NULL, size)
    return bytearray(size)


@cython.cfunc
@cython.inline
def _bytes(room: bytes | bytearray) -> cython.p_uchar:
    if cython.compiled:
        return cython.cast(cython.p_uchar, PyBytes_AS_STRING(room))
    return room
