"""NSQ V1 as nsqd speaks it: commands for an nsqlookupd, and the answers that come back. Knows no socket."""

from __future__ import annotations

import struct
from typing import Final

from penstock.protocol.v1 import MAGIC

LARGEST_ANSWER: Final = 1 << 20
PING: Final = b"PING\n"

_SIZE: Final = struct.Struct(">i")


def greeting(said: bytes) -> bytes:
    """The first bytes of a connection, and what the nsqd says of itself, as JSON."""
    return MAGIC + b"IDENTIFY\n" + _SIZE.pack(len(said)) + said


def register(topic: str, channel: str = "") -> bytes:
    return f"REGISTER {topic} {channel}".rstrip().encode() + b"\n"


def unregister(topic: str, channel: str = "") -> bytes:
    return b"UN" + register(topic, channel)


class Answers:
    """The answers of one connection, in order."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> None:
        self._held += data

    def next(self) -> bytes | None:
        """The next one; None where it is not whole. ValueError where it is none."""
        if len(self._held) < _SIZE.size:
            return None
        (size,) = _SIZE.unpack_from(self._held)
        if not 0 <= size <= LARGEST_ANSWER:
            raise ValueError(f"an answer of {size} bytes")
        end = _SIZE.size + size
        if len(self._held) < end:
            return None
        answer = bytes(self._held[_SIZE.size : end])
        del self._held[:end]
        return answer
