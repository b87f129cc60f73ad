"""Tokens and what their holders may do, one a line. Knows text; neither files nor who shows a token.

    # name    token                      grants
    shop      kW3xr0…                    publish:orders.*
    billing   sha256:2c26b46b68ffc6…     subscribe:orders.*/billing* read:orders.*
    ops       9fPq1b…                    *:*

Only digests are kept, and all of them are compared with what is shown, each in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.auth.grants import Grant, Right, grant
from penstock.errors import BadOption

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SHORT: Final = 16  # characters; a token below that can be guessed
_DIGEST: Final = re.compile(r"sha256:([0-9a-fA-F]{64})")


class Holder(NamedTuple):
    """Of a token."""

    name: str
    digest: bytes
    grants: tuple[Grant, ...]

    def may(self, right: Right, topic: str | None = None, channel: str | None = None) -> bool:
        """With no topic: whatever the topic."""
        return right is Right.ANY or any(grant.allows(right, topic, channel) for grant in self.grants)


class Tokens:
    """A set of them, which does not change; BadOption where two have the same name or token."""

    def __init__(self, holders: Iterable[Holder] = ()) -> None:
        self._holders = tuple(holders)
        names: set[str] = set()
        of_digest: dict[bytes, str] = {}
        for name, digest, _ in self._holders:
            if name in names:
                raise BadOption(f"there are two tokens of the name {name}")
            if digest in of_digest:
                raise BadOption(f"{of_digest[digest]} and {name} have the same token")
            names.add(name)
            of_digest[digest] = name

    def __iter__(self) -> Iterator[Holder]:
        return iter(self._holders)

    def holder(self, token: bytes) -> Holder | None:
        """Whose it is."""
        shown, found = hashlib.sha256(token).digest(), None
        for holder in self._holders:
            if hmac.compare_digest(holder.digest, shown):
                found = holder
        return found


def parse(text: str, where: str) -> tuple[list[Holder], list[str]]:
    """The tokens of these lines, and what is doubtful about them; BadOption, which never shows a token."""
    holders, doubts = [], []
    for number, line in enumerate(re.split(r"[\n;]", text), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        place = f"{where}, line {number}"
        if len(words) < 3:
            raise BadOption(f"{place}: a line has a name, a token and at least one grant, such as publish:orders.*")
        name, token = words[:2]
        holders.append(Holder(name, _digest(token, place), tuple(_grants(words[2:], place))))
        if len(token) < SHORT:
            doubts.append(f"{place}: the token of {name} has fewer than {SHORT} characters, and may be guessed")
    return holders, doubts


def _grants(words: list[str], place: str) -> Iterator[Grant]:
    for number, word in enumerate(words, 3):
        try:
            yield grant(word)
        except ValueError as error:
            raise BadOption(f"{place}: word {number} {error}") from None


def _digest(token: str, place: str) -> bytes:
    if (digest := _DIGEST.fullmatch(token)) is not None:
        return bytes.fromhex(digest[1])
    if token.startswith("sha256:"):
        raise BadOption(f"{place}: behind sha256: stand 64 hex digits")
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()  # as it came from the environment
