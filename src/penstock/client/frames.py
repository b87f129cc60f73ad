"""Bytes in; messages, answers and errors out. Knows no connection, and nobody who waits for them.

    frame     size u32 | type u32 | data                                     type 0: answer, 1: error, 2: message
    message   timestamp u64 | attempts u16 | id, 16 hex digits | body

Compiled: makes an object of each message that a consumer is given.
"""

# What is read from a C array has no type that mypy knows.
# mypy: no-warn-return-any

from __future__ import annotations

from typing import Any, Final

from penstock.errors import HandshakeFailed

try:
    import cython
except ImportError:  # a plain build has no need of Cython
    from penstock import plain as cython  # type: ignore[no-redef]

ANSWER, ERROR, MESSAGE = range(3)
HEARTBEAT: Final = b"_heartbeat_"

_LARGEST: Final = 1 << 30  # no nsqd sends more: who answers with it speaks another language


@cython.cclass
class Delivery:
    """A message as it came."""

    id = cython.declare(bytes, visibility="readonly")  # 16 hex digits
    body = cython.declare(bytes, visibility="readonly")
    attempts = cython.declare(cython.Py_ssize_t, visibility="readonly")  # this one is counted
    timestamp = cython.declare(cython.ulonglong, visibility="readonly")  # when it was published, ns since 1970
    answered = cython.declare(cython.bint, visibility="public")
    holder: Any = cython.declare(object, visibility="public")  # the subscription that it came by
    delivered = cython.declare(cython.double, visibility="readonly")  # when it came, on the loop's clock
    touched = cython.declare(cython.double, visibility="public")  # when its time began, or began anew

    def __init__(
        self,
        id_: bytes,
        body: bytes,
        attempts: cython.Py_ssize_t,
        timestamp: cython.ulonglong,
        delivered: cython.double = 0.0,
        holder: object = None,
    ) -> None:
        self.id = id_
        self.body = body
        self.attempts = attempts
        self.timestamp = timestamp
        self.answered = False
        self.holder = holder
        self.delivered = self.touched = delivered


@cython.cclass
class Frames:
    """Those of one connection: `feed` sorts what came into `messages` and `answers`, for the caller to take."""

    messages = cython.declare(list, visibility="public")
    answers = cython.declare(list, visibility="public")  # (type, data), without heartbeats
    heartbeats = cython.declare(cython.Py_ssize_t, visibility="public")
    _make: type[Delivery]
    _holder: object
    _pieces: list[bytes]
    _have: cython.Py_ssize_t
    _needed: cython.Py_ssize_t
    _now: cython.double

    def __init__(self, make: type[Delivery] = Delivery, holder: object = None) -> None:
        """Messages are made as `make` objects, which know their `holder`."""
        self.messages = []
        self.answers = []
        self.heartbeats = 0
        self._make = make
        self._holder = holder
        self._pieces = []
        self._have = self._needed = 0
        self._now = 0.0

    def feed(self, data: bytes, now: cython.double = 0.0) -> None:
        """Take the next bytes; what is no whole frame is kept, in the pieces that it came in."""
        at: cython.Py_ssize_t
        self._now = now
        if self._have:
            self._pieces.append(data)
            self._have += len(data)
            if self._have < self._needed:
                return
            data = b"".join(self._pieces)
            self._pieces = []
            self._have = 0
        at = self._scan(data)
        if at < len(data):
            rest = data[at:]
            self._pieces = [rest]
            self._have = len(rest)

    @cython.cfunc
    def _scan(self, data: bytes) -> cython.Py_ssize_t:
        raw: cython.p_const_uchar = data
        at: cython.Py_ssize_t = 0
        end: cython.Py_ssize_t = len(data)
        size: cython.Py_ssize_t
        self._needed = 8
        while end - at >= 8:
            size = _u32(raw, at)
            if size < 4 or size > _LARGEST:
                raise HandshakeFailed(f"no nsqd: it sends a frame of {size} bytes")
            if size > end - at - 4:
                self._needed = 4 + size
                break
            if _u32(raw, at + 4) == MESSAGE and size >= 30:
                self._message(data, at, size)
            else:
                self._answer(_u32(raw, at + 4), data[at + 8 : at + 4 + size])
            at += 4 + size
        return at

    @cython.cfunc
    @cython.inline
    def _message(self, data: bytes, at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> object:
        raw: cython.p_const_uchar = data
        timestamp: cython.ulonglong = _u32(raw, at + 8)
        attempts: cython.int = raw[at + 16]
        self.messages.append(
            self._make(
                data[at + 18 : at + 34],
                data[at + 34 : at + 4 + size],
                (attempts << 8) | raw[at + 17],
                (timestamp << 32) | _u32(raw, at + 12),
                self._now,
                self._holder,
            )
        )
        return None

    @cython.cfunc
    def _answer(self, kind: cython.Py_ssize_t, data: bytes) -> object:
        if data == HEARTBEAT and kind == ANSWER:
            self.heartbeats += 1
        else:
            self.answers.append((kind, data))
        return None


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _u32(raw: cython.p_const_uchar, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    top: cython.Py_ssize_t = raw[at]  # widened first: as a C int, `<< 24` turns negative from 0x80 on
    return (top << 24) | (raw[at + 1] << 16) | (raw[at + 2] << 8) | raw[at + 3]
