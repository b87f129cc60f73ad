r"""The commands of NSQ V2, read from a connection's bytes. Knows no socket, no broker and no answers.

    "  V2" | command | command | ...              command:  line \n  or  line \n | size u32 | body

    bytes received --next--> a command, or None: what is left from `at` on is no whole one yet

- `next` gives one command, or the run of hot ones that lie one behind the other: FIN, and PUB by the same line.
- What a command changes is told to the parser before it is asked for the next one: `enter`, `heartbeats`,
  `tls_required`. Bytes that belong to another stream (TLS, compression) stay where they are, from `at` on.
- The checks are nsqd's, in its order, so that a client is told the same; each error that `next` raises is fatal.
- Bodies stay in the buffer. The parser keeps numbers, and the last line of a producer: mostly it is the next one too.
- NSQ opens the topic of an MPUB before it reads the body: one that is not whole and right at once is announced.

Compiled: each read of a busy connection comes here.
"""

# What is read from a C array has no type that mypy knows.
# mypy: no-warn-return-any

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.errors import BadBody, BadChannel, BadMessage, BadProtocol, BadTopic, ClientError, Invalid, LineTooLong
from penstock.protocol.commands import Auth, Cls, Dpub, Fins, Identify, Mpub, Opening, Pubs, Rdy, Req, Sub, Touch
from penstock.protocol.ids import FIN, NO_ID, fins
from penstock.protocol.mpub import MpubBody
from penstock.protocol.v2 import MAGIC, State, allows
from penstock.protocol.words import decimal, delay, message_id, name, signed, text

try:
    import cython
except ImportError:  # a plain build has no need of Cython
    from penstock import plain as cython  # type: ignore[no-redef]
if cython.compiled:
    from cython.cimports.libc.string import memchr, memcmp

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.protocol.commands import Command

LONGEST_LINE: Final = 16 << 10  # with its end

_FIN = cython.declare(cython.Py_ssize_t, FIN)
_LONGEST_LINE = cython.declare(cython.Py_ssize_t, LONGEST_LINE)


class Limits(NamedTuple):
    """What a node takes, as its flags say."""

    max_msg_size: int = 1 << 20
    max_body_size: int = 5 << 20
    max_rdy_count: int = 2500
    max_req_timeout: int = 3_600_000_000_000  # ns


@cython.cclass
class Parser:
    """The commands of one connection, in order. After an error there are none any more."""

    at = cython.declare(cython.Py_ssize_t, visibility="readonly")  # where the bytes begin that no command has used
    needed = cython.declare(cython.Py_ssize_t, visibility="readonly")  # bytes from there that it seems to take
    heartbeats = cython.declare(cython.bint, visibility="public")  # without them there is no SUB
    tls_required = cython.declare(cython.bint, visibility="public")  # and not there yet
    _limits: Limits
    _max_msg_size: cython.Py_ssize_t
    _state: State
    _allowed: frozenset[bytes]
    _consuming: cython.bint
    _greeted: cython.bint
    _open: str  # the command whose body is not here,
    _open_line: cython.Py_ssize_t  # and how long its line is
    _line: bytes  # the last PUB or MPUB, with its end
    _line_size: cython.Py_ssize_t
    _topic: str
    _is_mpub: cython.bint
    _announced: cython.bint
    _body: MpubBody | None

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._max_msg_size = limits.max_msg_size
        self._greeted = self.tls_required = self._is_mpub = self._announced = False
        self.heartbeats = True
        self._line = b""
        self._topic = self._open = ""
        self.at = self.needed = self._line_size = self._open_line = 0
        self._body = None
        self.enter(State.INIT)

    def enter(self, state: State) -> None:
        """From now on this is the connection's state."""
        self._state = state
        self._allowed = _ALLOWED[state]
        self._consuming = b"FIN" in self._allowed

    def next(self, data: bytearray, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> Command | None:
        """What begins at `at`, of which the bytes up to `end` are here; None where it is not whole.

        `at` then says where to go on, and after None `needed` how many bytes from there it seems to take. The next
        call is given those from `at` on again, in whatever buffer they lie by then.
        """
        found: Command | str | None
        if at < 0 or at > end or end > len(data):
            raise ValueError("not inside the data")
        self.at = at
        self.needed = 0
        self._open = ""
        if not self._greeted and not self._greet(data, end):
            return None
        while self.at < end:
            found = self._read(data, data, end)
            if found is not _SKIPPED:
                return found  # type: ignore[return-value]
        return None

    def cut_off(self, here: cython.Py_ssize_t) -> ClientError | None:
        """What NSQ tells a client that ends its stream with `here` bytes behind `at`; None where it is nothing."""
        here -= self._open_line
        if not self._open:
            return None
        if self._open == "MPUB" and self._body is not None:
            return self._body.cut_off(here)
        size = " size" if here < 4 else ""
        if self._open in {"PUB", "DPUB"}:
            return BadMessage(f"{self._open} failed to read message body{size}")
        return BadBody(f"{self._open} failed to read body{size}")

    @cython.cfunc
    def _wait(self, needed: cython.Py_ssize_t, command: str, line: cython.Py_ssize_t) -> cython.void:
        self.needed = needed
        self._open = command
        self._open_line = line

    @cython.cfunc
    def _greet(self, data: bytearray, end: cython.Py_ssize_t) -> cython.bint:
        """Whether the connection's first bytes are all here; they are right then."""
        if end - self.at < 4:
            self.needed = 4
            return False
        if data[self.at : self.at + 4] != MAGIC:
            raise BadProtocol
        self._greeted = True
        self.at += 4
        return True

    @cython.cfunc
    def _read(self, data: bytearray, raw: cython.p_const_uchar, end: cython.Py_ssize_t) -> Command | str | None:
        """The hot commands; `raw` is the data."""
        if self._consuming and raw[self.at] == 70:  # F
            ids: array[int] | None = fins(data, self.at, end)
            if ids is not None:
                self.at += _FIN * len(ids)
                return Fins(ids)
        elif 0 < self._line_size <= end - self.at and _equal(raw, self.at, self._line, self._line_size):
            return self._mpub_here(data, end) if self._is_mpub else self._pubs_here(data, raw, end)
        return self._command(data, raw, end)

    @cython.cfunc
    def _command(self, data: bytearray, raw: cython.p_const_uchar, end: cython.Py_ssize_t) -> Command | str | None:
        """Any command, by its line."""
        at: cython.Py_ssize_t = self.at
        stop: cython.Py_ssize_t = _line_end(raw, at, min(end, at + _LONGEST_LINE))
        body: cython.Py_ssize_t = stop + 1
        if stop < 0:
            if end - at >= _LONGEST_LINE:
                raise LineTooLong("a command's line has no end")
            self.needed = end - at + 1
            return None
        if stop > at and raw[stop - 1] == 13:  # CR
            stop -= 1
        words: list[bytes] = _bytes(raw, at, stop).split(b" ")
        self._check_allowed(words[0])
        with_body = _WITH_BODY.get(words[0])
        if with_body is not None:
            return with_body(self, words, data, body, end)
        self.at = body
        return _BY_LINE[words[0]](self, words)

    @cython.cfunc
    def _check_allowed(self, word: bytes) -> cython.void:
        if self.tls_required and word != b"IDENTIFY":
            raise Invalid(f"cannot {text(word)} in current state (TLS required)")
        if word not in self._allowed:
            known = word in _BY_LINE or word in _WITH_BODY
            raise Invalid(f"cannot {text(word)} in current state" if known else f"invalid command {text(word)}")

    # --- consuming

    def _sub(self, words: list[bytes]) -> Command:
        if not self.heartbeats:
            raise Invalid("cannot SUB with heartbeats disabled")
        if len(words) < 3:
            raise Invalid("SUB insufficient number of parameters")
        return Sub(name(words[1], "SUB topic", BadTopic), name(words[2], "SUB channel", BadChannel))

    def _rdy(self, words: list[bytes]) -> Command | str:
        count = 1
        if self._state == State.CLOSING:
            return _SKIPPED
        if len(words) > 1:
            try:
                count = signed(decimal(words[1]))
            except ValueError:
                raise Invalid(f"RDY could not parse count {text(words[1])}") from None
        if not 0 <= count <= self._limits.max_rdy_count:
            raise Invalid(f"RDY count {count} out of range 0-{self._limits.max_rdy_count}")
        return Rdy(count)

    def _fin(self, words: list[bytes]) -> Command:
        if len(words) < 2:
            raise Invalid("FIN insufficient number of params")
        id_ = message_id(words[1])
        return Fins(array("Q", [id_]), words[1] if id_ == NO_ID else b"")

    def _req(self, words: list[bytes]) -> Command:
        if len(words) < 3:
            raise Invalid("REQ insufficient number of params")
        id_ = message_id(words[1])
        try:
            wanted = delay(decimal(words[2]))
        except ValueError:
            raise Invalid(f"REQ could not parse timeout {text(words[2])}") from None
        return Req(id_, text(words[1]), min(max(wanted, 0), self._limits.max_req_timeout))

    def _touch(self, words: list[bytes]) -> Command:
        if len(words) < 2:
            raise Invalid("TOUCH insufficient number of params")
        return Touch(message_id(words[1]), text(words[1]))

    def _cls(self, words: list[bytes]) -> Command:
        return Cls()

    def _nop(self, words: list[bytes]) -> str:
        return _SKIPPED

    # --- negotiating

    def _identify(
        self, words: list[bytes], data: bytearray, body: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> Command | None:
        content = self._content("IDENTIFY", data, body, end)
        return None if content is None else Identify(content)

    def _auth(
        self, words: list[bytes], data: bytearray, body: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> Command | None:
        if len(words) != 1:
            raise Invalid("AUTH invalid number of parameters")
        content = self._content("AUTH", data, body, end)
        return None if content is None else Auth(content)

    @cython.cfunc
    def _content(self, command: str, data: bytearray, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> bytes | None:
        """The body behind its size; None where it is not whole."""
        size: cython.Py_ssize_t = _size(data, at) if end - at >= 4 else 0
        if end - at >= 4 and size <= 0:
            raise BadBody(f"{command} invalid body size {size}")
        if size > self._limits.max_body_size:
            raise BadBody(f"{command} body too big {size} > {self._limits.max_body_size}")
        if size > end - at - 4 or end - at < 4:
            self._wait(at + 4 + size - self.at, command, at - self.at)
            return None
        self.at = at + 4 + size
        return _bytes(data, at + 4, self.at)

    # --- publishing

    def _pub(
        self, words: list[bytes], data: bytearray, body: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> Command | None:
        if len(words) < 2:
            raise Invalid("PUB insufficient number of parameters")
        self._remember(name(words[1], "PUB topic", BadTopic), data, body, False)
        return self._pubs_here(data, data, end)  # type: ignore[return-value]

    def _mpub(
        self, words: list[bytes], data: bytearray, body: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> Command | None:
        if len(words) < 2:
            raise Invalid("MPUB insufficient number of parameters")
        # nsqd says the code twice, so do we
        self._remember(name(words[1], "E_BAD_TOPIC MPUB topic", BadTopic), data, body, True)
        return self._mpub_here(data, end)  # type: ignore[return-value]

    def _dpub(
        self, words: list[bytes], data: bytearray, body: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> Command | None:
        if len(words) < 3:
            raise Invalid("DPUB insufficient number of parameters")
        topic = name(words[1], "DPUB topic", BadTopic)
        try:
            milliseconds = decimal(words[2])
        except ValueError:
            raise Invalid(f"DPUB could not parse timeout {text(words[2])}") from None
        wanted = delay(milliseconds)
        if not 0 <= wanted <= self._limits.max_req_timeout:
            raise Invalid(f"DPUB timeout {milliseconds} out of range 0-{self._limits.max_req_timeout // 1_000_000}")
        size = self._message_size("DPUB", data, body, end)
        if size < 0:
            return None
        self.at = body + 4 + size
        return Dpub(topic, wanted, _bytes(data, body + 4, self.at))

    @cython.cfunc
    def _remember(self, topic: str, data: bytearray, body: cython.Py_ssize_t, is_mpub: cython.bint) -> cython.void:
        """The line before `body` is a producer's."""
        self._topic = topic
        self._line = _bytes(data, self.at, body)
        self._line_size = body - self.at
        self._is_mpub = is_mpub

    @cython.cfunc
    def _message_size(
        self, command: str, raw: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """The size that stands at `at`; -1 where it or what it tells of is not here."""
        size: cython.Py_ssize_t = _size(raw, at) if end - at >= 4 else 0
        if end - at >= 4 and size <= 0:
            raise BadMessage(f"{command} invalid message body size {size}")
        if size > self._max_msg_size:
            raise BadMessage(f"{command} message too big {size} > {self._max_msg_size}")
        if size > end - at - 4 or end - at < 4:
            self._wait(at + 4 + size - self.at, command, at - self.at)
            return -1
        return size

    @cython.cfunc
    def _pubs_here(self, data: bytearray, raw: cython.p_const_uchar, end: cython.Py_ssize_t) -> Command | str | None:
        """The PUBs by the line that stands here; None where the first is not whole."""
        start: cython.Py_ssize_t = self.at
        line: cython.Py_ssize_t = self._line_size
        count: cython.Py_ssize_t = 1
        size: cython.Py_ssize_t = self._message_size("PUB", raw, start + line, end)
        at: cython.Py_ssize_t = start + line + 4 + size
        if size < 0:
            return None
        while end - at >= line + 4 and _equal(raw, at, self._line, line):
            size = _size(raw, at + line)
            if size <= 0 or size > self._max_msg_size or size > end - at - line - 4:
                break  # the next call says what it is
            at += line + 4 + size
            count += 1
        self.at = at
        return Pubs(self._topic, data, start, at, count, line)

    @cython.cfunc
    def _mpub_here(self, data: bytearray, end: cython.Py_ssize_t) -> Command | str | None:
        """The MPUB whose line stands here, announced before where it is not whole and right at once."""
        line: cython.Py_ssize_t = self._line_size
        body: MpubBody | None = self._body
        if body is None:
            body = self._body = MpubBody(self._limits.max_msg_size, self._limits.max_body_size)
        try:
            if body.check(data, self.at + line, end):
                return self._mpub_whole(data, self.at + line, body)
        except ClientError:
            if self._announced:
                raise
        if not self._announced:
            self._announced = True
            return Opening(self._topic)
        self._wait(line + body.needed, "MPUB", line)
        return None

    @cython.cfunc
    def _mpub_whole(self, data: bytearray, start: cython.Py_ssize_t, body: MpubBody) -> Command | str | None:
        self.at = start + body.checked
        found = Mpub(self._topic, data, start + 8, self.at, body.count, 0)
        body.begin()
        self._announced = False
        return found


_SKIPPED: Final = "skipped"  # what is read of a command without effect

_BY_LINE: Final[dict[bytes, Callable[[Parser, list[bytes]], Command | str]]] = {
    b"SUB": Parser._sub,
    b"RDY": Parser._rdy,
    b"FIN": Parser._fin,
    b"REQ": Parser._req,
    b"TOUCH": Parser._touch,
    b"CLS": Parser._cls,
    b"NOP": Parser._nop,
}
_WITH_BODY: Final[dict[bytes, Callable[[Parser, list[bytes], bytearray, int, int], Command | None]]] = {
    b"IDENTIFY": Parser._identify,
    b"AUTH": Parser._auth,
    b"PUB": Parser._pub,
    b"MPUB": Parser._mpub,
    b"DPUB": Parser._dpub,
}
_ALLOWED: Final = {
    state: frozenset(command for command in [*_BY_LINE, *_WITH_BODY] if allows(state, command.decode()))
    for state in State
}


# --- bytes and what they mean


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _size(raw: cython.p_const_uchar, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The size at `at`: NSQ's are signed, those from 2**31 on are negative."""
    size: cython.Py_ssize_t = raw[at]  # widened first: as a C int, `<< 24` turns negative from 0x80 on
    size = (size << 24) | (raw[at + 1] << 16) | (raw[at + 2] << 8) | raw[at + 3]
    return size - ((size >> 31) << 32)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _line_end(raw: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Where the first newline is; -1 where there is none."""
    if cython.compiled:
        found = cython.cast(cython.p_const_uchar, memchr(raw + at, 10, end - at))
        return found - raw if found != cython.NULL else -1
    return raw.find(b"\n", at, end)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _equal(raw: cython.p_const_uchar, at: cython.Py_ssize_t, line: bytes, size: cython.Py_ssize_t) -> cython.bint:
    """Whether the line, of this size, stands at `at`."""
    if cython.compiled:
        return memcmp(raw + at, cython.cast(cython.p_const_char, line), size) == 0
    return raw.startswith(line, at)


@cython.cfunc
@cython.inline
def _bytes(raw: cython.p_const_uchar, start: cython.Py_ssize_t, stop: cython.Py_ssize_t) -> bytes:
    return raw[start:stop] if cython.compiled else bytes(raw[start:stop])
