"""The body of an MPUB, checked while it arrives. Knows no topic and no line.

    size u32 | count u32 | (size u32 | body) ...        the count says where it ends, whatever the first size says

Compiled: every message has a size.
"""

# What is read from a C array has no type that mypy knows.
# mypy: no-warn-return-any

from __future__ import annotations

from penstock.errors import BadBody, BadMessage, ClientError

try:
    import cython
except ImportError:  # a plain build has no need of Cython
    from penstock import plain as cython  # type: ignore[no-redef]


@cython.cclass
class MpubBody:
    """How far a body was checked, so that no byte of it is looked at twice."""

    count = cython.declare(cython.Py_ssize_t, visibility="readonly")  # messages, as the client says
    checked = cython.declare(cython.Py_ssize_t, visibility="readonly")  # bytes; the whole body, once it is here
    needed = cython.declare(cython.Py_ssize_t, visibility="readonly")  # bytes that it seems to take
    _max_msg_size: cython.Py_ssize_t
    _max_body_size: cython.Py_ssize_t
    _messages: cython.Py_ssize_t  # that were found good

    def __init__(self, max_msg_size: cython.Py_ssize_t, max_body_size: cython.Py_ssize_t) -> None:
        self._max_msg_size = max_msg_size
        self._max_body_size = max_body_size
        self.begin()

    def begin(self) -> None:
        """The next body is another one."""
        self.count = self.checked = self.needed = self._messages = 0

    def check(self, data: bytearray, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> bool:
        """Go on with the body that begins at `at`; whether all of it is here."""
        if at < 0 or at + self.checked > end or end > len(data):
            raise ValueError("not inside the data")
        if self.checked == 0 and not self._head(data, at, end - at):
            return False
        self._go_on(data, at, end)
        return self._messages == self.count

    @cython.cfunc
    def _head(self, raw: cython.p_const_uchar, at: cython.Py_ssize_t, here: cython.Py_ssize_t) -> cython.bint:
        size: cython.Py_ssize_t
        if here < 4:
            self.needed = 4
            return False
        size = _size(raw, at)
        if size <= 0:
            raise BadBody(f"MPUB invalid body size {size}")
        if size > self._max_body_size:
            raise BadBody(f"MPUB body too big {size} > {self._max_body_size}")
        self.needed = 4 + size
        if here < 8:
            return False
        self.count = _size(raw, at + 4)
        if self.count <= 0 or self.count > (self._max_body_size - 4) // 5:
            raise BadBody(f"MPUB invalid message count {self.count}")
        self.checked = 8
        return True

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.wraparound(False)
    def _go_on(self, raw: cython.p_const_uchar, begin: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.void:
        at: cython.Py_ssize_t = begin + self.checked
        last: cython.Py_ssize_t = begin + 4 + self._max_body_size
        most: cython.Py_ssize_t = self._max_msg_size
        number: cython.Py_ssize_t = self._messages
        count: cython.Py_ssize_t = self.count
        size: cython.Py_ssize_t = 0
        while number < count and end - at >= 4:
            size = _size(raw, at)
            if size <= 0 or size > most or size > last - at - 4:
                raise self._wrong(number, size, at + size - begin)
            if size > end - at - 4:
                break
            at += 4 + size
            number += 1
            size = 0
        self._messages = number
        self.checked = at - begin
        if number < count:
            self.needed = max(self.needed, self.checked + 4 + size)

    @cython.cfunc
    def _wrong(self, number: cython.Py_ssize_t, size: cython.Py_ssize_t, whole: cython.Py_ssize_t) -> ClientError:
        if size <= 0:
            return BadMessage(f"MPUB invalid message({number}) body size {size}")
        if size > self._max_msg_size:
            return BadMessage(f"MPUB message too big {size} > {self._max_msg_size}")
        # nsqd reads on as far as the count says; that much memory no one gets from us
        return BadBody(f"MPUB body too big {whole} > {self._max_body_size}")

    def cut_off(self, here: int) -> ClientError:
        """What is wrong when no more than `here` bytes of the body come, and it is not whole."""
        if here < 4:
            return BadBody("MPUB failed to read body size")
        if here < 8:
            return BadBody("MPUB failed to read message count")
        if here - self.checked < 4:
            return BadMessage(f"MPUB failed to read message({self._messages}) body size")
        return BadMessage("MPUB failed to read message body")


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _size(raw: cython.p_const_uchar, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The size at `at`: NSQ's are signed, those from 2**31 on are negative."""
    size: cython.Py_ssize_t = raw[at]  # widened first: as a C int, `<< 24` turns negative from 0x80 on
    size = (size << 24) | (raw[at + 1] << 16) | (raw[at + 2] << 8) | raw[at + 3]
    return size - ((size >> 31) << 32)
