r"""NSQ V1, the protocol between nsqd and nsqlookupd, as nsqlookupd reads it. Knows no socket and no registrations.

    "  V1" | command | command | ...              command:  line \n  or  IDENTIFY \n | size u32 | JSON
    answer | answer | ...                         answer:   size u32 | data

The checks are nsqlookupd's, in its order, so that an nsqd is told the same; each error is fatal.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.errors import BadBody, BadChannel, BadProtocol, BadTopic, ClientError, Invalid, LineTooLong
from penstock.protocol.go_json import fields
from penstock.protocol.names import is_valid
from penstock.protocol.words import text

if TYPE_CHECKING:
    from typing import TypeAlias

MAGIC: Final = b"  V1"  # a connection's first bytes
LONGEST_LINE: Final = 16 << 10  # with its end
LARGEST_BODY: Final = 1 << 20

_AROUND: Final = b" \t\n\v\f\r"
_SIZE: Final = struct.Struct(">i")


class Identify(NamedTuple):
    """What an nsqd says of itself."""

    hostname: str
    broadcast_address: str
    tcp_port: int
    http_port: int
    version: str
    topology_zone: str
    topology_region: str


class Register(NamedTuple):
    topic: str
    channel: str  # empty: the topic alone


class Unregister(NamedTuple):
    topic: str
    channel: str


class Ping(NamedTuple):
    """The nsqd is there."""


if TYPE_CHECKING:
    Command: TypeAlias = Identify | Register | Unregister | Ping

_NOTHING: Final[dict[str, str | int | bool]] = {
    "remote_address": "",  # has to be a string, and is passed over
    "hostname": "",
    "broadcast_address": "",
    "tcp_port": 0,
    "http_port": 0,
    "version": "",
    "topology_zone": "",
    "topology_region": "",
}


def answer(data: bytes) -> bytes:
    """As it goes over the wire."""
    return _SIZE.pack(len(data)) + data


class Parser:
    """The commands of one connection, in order. After an error there are none any more."""

    __slots__ = ("_awaits_body", "_greeted", "_held", "_identified")

    def __init__(self) -> None:
        self._held = bytearray()
        self._greeted = self._identified = self._awaits_body = False

    def feed(self, data: bytes) -> None:
        self._held += data

    def next(self) -> Command | None:
        """The next command; None where it is not whole. ClientError where it is none, LineTooLong without an end."""
        if not self._greeted and not self._greet():
            return None
        if self._awaits_body:
            return self._identify()
        line = self._line()
        return None if line is None else self._command(line.split(b" "))

    def cut_off(self) -> ClientError | None:
        """What is told to an nsqd that ends its stream here; None where it is nothing."""
        if not self._awaits_body:
            return None
        return BadBody("IDENTIFY failed to read body" + (" size" if len(self._held) < _SIZE.size else ""))

    def _greet(self) -> bool:
        """Whether the first bytes are all here; they are right then."""
        if len(self._held) < len(MAGIC):
            return False
        if not self._held.startswith(MAGIC):
            raise BadProtocol
        del self._held[: len(MAGIC)]
        self._greeted = True
        return True

    def _line(self) -> bytes | None:
        end = self._held.find(b"\n", 0, LONGEST_LINE)
        if end >= 0:
            line = bytes(self._held[:end]).strip(_AROUND)
            del self._held[: end + 1]
            return line
        if len(self._held) >= LONGEST_LINE:
            raise LineTooLong
        return None

    def _command(self, words: list[bytes]) -> Command | None:
        command = words[0]
        if command == b"PING":
            return Ping()
        if command == b"IDENTIFY":
            if self._identified:
                raise Invalid("cannot IDENTIFY again")
            self._awaits_body = True
            return self._identify()
        if command == b"REGISTER":
            return Register(*self._names(words))
        if command == b"UNREGISTER":
            return Unregister(*self._names(words))
        raise Invalid(f"invalid command {text(command)}")

    def _names(self, words: list[bytes]) -> tuple[str, str]:
        """Topic and channel; what stands behind them is passed over."""
        if not self._identified:
            raise Invalid("client must IDENTIFY")
        command, *names = (text(word) for word in words)
        if not names:
            raise Invalid(f"{command} insufficient number of params")
        topic, channel = (*names, "")[:2]
        if not is_valid(topic):
            raise BadTopic(f"{command} topic name '{topic}' is not valid")
        if channel and not is_valid(channel):
            raise BadChannel(f"{command} channel name '{channel}' is not valid")
        return topic, channel

    def _identify(self) -> Identify | None:
        if len(self._held) < _SIZE.size:
            return None
        (size,) = _SIZE.unpack_from(self._held)
        if not 0 <= size <= LARGEST_BODY:
            raise BadBody(f"IDENTIFY invalid body size {size}")
        end = _SIZE.size + size
        if len(self._held) < end:
            return None
        found = _identity(bytes(self._held[_SIZE.size : end]))
        del self._held[:end]
        self._awaits_body, self._identified = False, True
        return found


def _identity(body: bytes) -> Identify:
    try:
        said = fields(body, _NOTHING)
    except ValueError as error:
        raise BadBody("IDENTIFY failed to decode JSON body") from error
    del said["remote_address"]
    found = Identify(**said)
    if not (found.broadcast_address and found.tcp_port and found.http_port and found.version):
        raise BadBody("IDENTIFY missing fields")
    return found
