"""What a user gives to be published, checked before it waits for anybody. Knows no connection."""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from penstock.errors import BadMessage, BadTopic
from penstock.protocol.names import is_valid

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Buffer


@lru_cache(maxsize=4096)
def topic_name(topic: str) -> str:
    if not is_valid(topic):
        raise BadTopic(f"{topic!r} is no name that a topic may have")
    return topic


def as_body(given: Buffer) -> bytes:
    """A copy, where it could be changed meanwhile."""
    if isinstance(given, str):
        raise TypeError('a message is bytes: b"...", or text.encode()')
    body = given if type(given) is bytes else bytes(memoryview(given))
    if not body:
        raise BadMessage("a message has at least one byte")
    return body


def as_bodies(given: Iterable[Buffer]) -> list[bytes]:
    if isinstance(given, bytes | bytearray | memoryview | str):
        raise TypeError("several messages are a list of bytes")
    bodies = list(given)
    if set(map(type, bodies)) <= {bytes} and all(bodies):  # no bytecode for each message
        return bodies  # type: ignore[return-value]
    return [as_body(each) for each in bodies]


def as_seconds(delay: float | timedelta) -> float:
    seconds = delay.total_seconds() if isinstance(delay, timedelta) else delay
    if not seconds >= 0:
        raise ValueError(f"a delay of {delay!r}")
    return seconds


def as_ms(delay: float | timedelta) -> int:
    return round(as_seconds(delay) * 1000)
