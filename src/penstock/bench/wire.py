"""The load generator's end of the wire: frames read in one go.

A read of answers and messages becomes a few numbers and one piece with a FIN for each message. Knows no socket.

Compiled: the server is to be measured, and not who measures it.
"""

# What is read from a C array has no type that mypy knows.
# mypy: no-warn-return-any

from __future__ import annotations

import struct

from penstock.errors import BenchFailed

try:
    import cython
except ImportError:  # a plain build has no need of Cython
    from penstock import plain as cython  # type: ignore[no-redef]

_STAMP = struct.Struct(">Q")


def stamped(time: int, size: int) -> bytes:
    """A body that begins with a time in ns, for `Frames` to find again."""
    return _STAMP.pack(time) + bytes(max(0, size - _STAMP.size))


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _u32(raw: cython.p_const_uchar, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    top: cython.Py_ssize_t = raw[at]  # widened first: as a C int, `<< 24` turns negative from 0x80 on
    return (top << 24) | (raw[at + 1] << 16) | (raw[at + 2] << 8) | raw[at + 3]


@cython.cclass
class Frames:
    """What a server sent on one connection, counted."""

    answers = cython.declare(cython.Py_ssize_t, visibility="readonly")  # OKs, and other answers that are no heartbeats
    heartbeats = cython.declare(cython.Py_ssize_t, visibility="readonly")
    messages = cython.declare(cython.Py_ssize_t, visibility="readonly")
    again = cython.declare(cython.Py_ssize_t, visibility="readonly")  # of these, not at their first attempt
    needed = cython.declare(cython.Py_ssize_t, visibility="readonly")  # bytes of the frame that was not whole
    stamps = cython.declare(list, visibility="readonly")  # the times in the bodies, where they are wanted
    _with_stamps: cython.bint
    _fins: bytearray
    _filled: cython.Py_ssize_t

    def __init__(self, *, with_stamps: cython.bint = False) -> None:
        self.answers = self.heartbeats = self.messages = self.again = self.needed = 0
        self.stamps = []
        self._with_stamps = with_stamps
        self._fins = bytearray()
        self._filled = 0

    def scan(self, data: bytearray, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> int:
        """Count the whole frames in `data[at:end]`; where the first begins that is not whole."""
        raw: cython.p_const_uchar = data
        size: cython.Py_ssize_t
        if at < 0 or end > len(data):
            raise ValueError("not inside the data")
        self._filled = 0
        if len(self._fins) < (end - at) // 34 * 21:
            self._fins = bytearray((end - at) // 34 * 21)
        self.needed = 8
        while end - at >= 8:
            size = _u32(raw, at)
            if size < 4:
                raise BenchFailed(f"a frame of {size} bytes")
            if size > end - at - 4:
                self.needed = 4 + size
                break
            if raw[at + 7] == 2 and size >= 30:
                self._message(raw, at)
                if self._with_stamps:
                    self.stamps.append(_STAMP.unpack_from(data, at + 34)[0])
            else:
                self._answer(raw[at + 7], bytes(data[at + 8 : at + 4 + size]))
            at += 4 + size
        return at

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    @cython.boundscheck(False)
    @cython.wraparound(False)
    def _message(self, raw: cython.p_const_uchar, at: cython.Py_ssize_t) -> cython.void:
        fins: cython.p_uchar = self._fins
        to: cython.Py_ssize_t = self._filled
        place: cython.Py_ssize_t
        self.messages += 1
        if raw[at + 16] or raw[at + 17] != 1:
            self.again += 1
        fins[to] = 70
        fins[to + 1] = 73
        fins[to + 2] = 78
        fins[to + 3] = 32
        for place in range(16):
            fins[to + 4 + place] = raw[at + 18 + place]
        fins[to + 20] = 10
        self._filled = to + 21

    @cython.cfunc
    def _answer(self, kind: cython.int, data: bytes) -> cython.void:
        if kind != 0:
            raise BenchFailed(f"the server answered {data.decode('utf-8', 'replace')}")
        if data == b"_heartbeat_":
            self.heartbeats += 1
        else:
            self.answers += 1

    def fins(self) -> bytes:
        """A FIN for each message of the last `scan`."""
        return bytes(memoryview(self._fins)[: self._filled])
