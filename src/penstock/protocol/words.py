"""The words of a command's line: numbers, delays, ids, names. Knows no command and no state."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from penstock.errors import Invalid
from penstock.protocol.ids import number
from penstock.protocol.names import is_valid
from penstock.protocol.quoted import quoted

if TYPE_CHECKING:
    from penstock.errors import ClientError


def decimal(word: bytes) -> int:
    """The number that the digits are, in 64 bits: too many run over as in Go, and none are 0."""
    if len(word) < 19 and word.isdigit():
        return int(word)
    value = 0
    for digit in word:
        if not 48 <= digit <= 57:
            raise ValueError("no number")
        value = (value * 10 + digit - 48) % (1 << 64)
    return value


def delay(milliseconds: int) -> int:
    """In ns; what is too much runs over as in Go."""
    return signed(milliseconds * 1_000_000 % (1 << 64))


def signed(value: int) -> int:
    """What Go makes of an unsigned number."""
    return value - (1 << 64) if value >> 63 else value


def message_id(word: bytes) -> int:
    if len(word) != 16:
        raise Invalid("invalid message ID")
    return number(word)


@lru_cache(maxsize=4096)
def name(word: bytes, what: str, error: type[ClientError]) -> str:
    """A topic's or a channel's name."""
    found = word.decode("latin-1")
    if not is_valid(found):
        raise error(f"{what} name {quoted(word)} is not valid")
    return found


def text(word: bytes) -> str:
    """What is no UTF-8 stands in it as surrogates."""
    return word.decode("utf-8", "surrogateescape")
