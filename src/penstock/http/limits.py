"""How much of a client's bytes is kept, and how long it is waited for. Bodies are limited by their route."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SLICE: Final = 16 * 1024  # what is parsed at once: bounds how many requests wait in memory for the one before them
TURN: Final = 32  # requests of one connection that are answered before the loop sees to the others
LARGE: Final = 16 * 1024  # a body that is not copied to stand behind its head
DISCARD: Final = 256 * 1024  # of a body that nobody wants, before the connection is given up

SLOWEST: Final = 16 * 1024  # bytes a second: a longer body or answer gets more time, at this rate


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes and seconds. The times are kept to within a second."""

    target: int = 8 * 1024  # path and query
    head: int = 32 * 1024  # header names and values, and 32 for each header
    head_time: float = 10.0  # from a request's first byte to the end of its head
    body_time: float = 30.0  # for its body, and as much for its answer to be taken
    idle_time: float = 120.0  # between requests; Go's clients give up after 90, so the one who closes is the client
    linger_time: float = 2.0  # for what a refused client still sends: closed at once, it would never see the answer


def time_for(size: int, least: float) -> float:
    """How long so many bytes may take."""
    return least + size / SLOWEST
