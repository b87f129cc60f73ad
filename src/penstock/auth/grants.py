"""Rights on topics, as a line grants them: `publish,read:orders.*` or `subscribe:orders.*/billing*`.

Patterns are whole names, in which `*` stands for anything. `*` before the colon is every right.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache
from typing import Final, NamedTuple


class Right(StrEnum):
    PUBLISH = "publish"
    SUBSCRIBE = "subscribe"  # and to read a topic's log, and to move a reader
    ADMIN = "admin"  # topics and channels made, emptied, paused, deleted; the configuration set
    READ = "read"  # how things are, but no message; who may subscribe or administer may do so too
    ANY = "any"  # whoever has a token at all


GIVEN: Final = frozenset(Right) - {Right.ANY}
_READERS: Final = frozenset({Right.SUBSCRIBE, Right.ADMIN})
_PATTERN: Final = re.compile(r"[.a-zA-Z0-9_*-]+(?:#ephemeral)?")


class Grant(NamedTuple):
    rights: frozenset[Right]
    topics: str
    channels: str = "*"

    def allows(self, right: Right, topic: str | None, channel: str | None) -> bool:
        """With no topic it is about all of them."""
        if right not in self.rights and not (right is Right.READ and self.rights & _READERS):
            return False
        if topic is None:
            return self.topics == "*"
        return _matches(self.topics, topic) and (channel is None or _matches(self.channels, channel))


def grant(text: str) -> Grant:
    """ValueError, whose text goes behind its place, for what grants nothing: it may be a token that is out of place."""
    words, colon, patterns = text.partition(":")
    topics, slash, channels = patterns.partition("/")
    if not colon:
        raise ValueError("is no grant, such as publish:orders.*")
    for pattern in (topics, channels) if slash else (topics,):
        if not _PATTERN.fullmatch(pattern):
            raise ValueError("has a pattern that no name can match")
    return Grant(_rights(words), topics, channels or "*")


def _rights(words: str) -> frozenset[Right]:
    if words == "*":
        return GIVEN
    for word in words.split(","):
        if word not in GIVEN:
            raise ValueError(f"names a right that is none of {', '.join(right for right in Right if right in GIVEN)}")
    return frozenset(Right(word) for word in words.split(","))


def _matches(pattern: str, name: str) -> bool:
    return pattern == "*" or _compiled(pattern).fullmatch(name) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, re.sub(r"\*+", "*", pattern).split("*"))), re.DOTALL)
