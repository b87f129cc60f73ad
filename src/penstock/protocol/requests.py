"""What a client sends to nsqd, as bytes. Knows no connection; names are taken as valid, delays are in ms."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

NOP: Final = b"NOP\n"
CLS: Final = b"CLS\n"

_size: Final = struct.Struct(">I").pack


def pub(topic: str, body: bytes) -> bytes:
    return b"PUB %b\n%b%b" % (topic.encode(), _size(len(body)), body)


def dpub(topic: str, milliseconds: int, body: bytes) -> bytes:
    return b"DPUB %b %d\n%b%b" % (topic.encode(), milliseconds, _size(len(body)), body)


def mpub(topic: str, bodies: Sequence[bytes]) -> bytes:
    parts = [b""] * (2 * len(bodies))
    parts[0::2] = map(_size, map(len, bodies))  # no bytecode for each message
    parts[1::2] = bodies
    framed = b"".join(parts)
    return b"MPUB %b\n%b%b%b" % (topic.encode(), _size(len(framed) + 4), _size(len(bodies)), framed)


def identify(body: bytes) -> bytes:
    return b"IDENTIFY\n%b%b" % (_size(len(body)), body)


def auth(secret: bytes) -> bytes:
    return b"AUTH\n%b%b" % (_size(len(secret)), secret)


def sub(topic: str, channel: str) -> bytes:
    return b"SUB %b %b\n" % (topic.encode(), channel.encode())


def rdy(count: int) -> bytes:
    return b"RDY %d\n" % count


def fin(id_: bytes) -> bytes:
    return b"FIN %b\n" % id_


def req(id_: bytes, milliseconds: int) -> bytes:
    return b"REQ %b %d\n" % (id_, milliseconds)


def touch(id_: bytes) -> bytes:
    return b"TOUCH %b\n" % id_
