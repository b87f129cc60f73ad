"""How many may be connected, in all and from one address; and how much they may make the process hold. No protocol."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

_QUIET: Final = 1.0  # seconds between two lines about those that are refused


class Doors:
    """Of all ports of a daemon. A limit of 0 is none; those who come over a unix socket have no address."""

    def __init__(self, most: int, most_each: int, tell: Callable[[str], None]) -> None:
        self._most = most
        self._most_each = most_each
        self._tell = tell
        self._inside: dict[object, str] = {}
        self._of_host: Counter[str] = Counter()
        self._refused = 0
        self._told = -_QUIET

    def __len__(self) -> int:
        return len(self._inside)

    def enter(self, who: object, transport: asyncio.BaseTransport) -> bool:
        """Whether there is room for it; where there is none, `who` never hears of the connection again."""
        peer = transport.get_extra_info("peername")
        host = str(peer[0]) if isinstance(peer, tuple) else ""
        if self._most and len(self._inside) >= self._most:
            self._refuse(transport, f"{self._most} are connected")
            return False
        if self._most_each and host and self._of_host[host] >= self._most_each:
            self._refuse(transport, f"{self._most_each} are connected from {host}")
            return False
        self._inside[who] = host
        self._of_host[host] += 1
        return True

    def leave(self, who: object) -> None:
        host = self._inside.pop(who, None)
        if host is not None:
            self._of_host[host] -= 1
            if not self._of_host[host]:
                del self._of_host[host]

    def _refuse(self, transport: asyncio.BaseTransport, why: str) -> None:
        transport.set_protocol(asyncio.Protocol())
        transport.abort()  # type: ignore[attr-defined]
        self._refused += 1
        now = asyncio.get_running_loop().time()
        if now - self._told >= _QUIET:
            self._tell(f"refused {self._refused} connections: {why}")
            self._told, self._refused = now, 0


class Holder(Protocol):
    def drop(self, why: str) -> None:
        """It goes, and what is held for it."""


class Burden:
    """What is held for clients: commands and bodies that are not whole, messages and answers that are not taken.

    Who makes it too much does not matter: who holds most is dropped, until it is not too much any more.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._of: dict[Holder, int] = {}
        self.total = 0

    def hold(self, who: Holder, size: int) -> None:
        """So many bytes are held for it now."""
        before = self._of.get(who, 0)
        if size == before:
            return
        if size:
            self._of[who] = size
        else:
            del self._of[who]
        self.total += size - before
        while self._most and self.total > self._most:
            heaviest = max(self._of, key=self._of.__getitem__)
            held = self._of[heaviest]
            self.forget(heaviest)
            heaviest.drop(f"it holds {held} bytes, the most of all, and all together hold more than {self._most}")

    def forget(self, who: Holder) -> None:
        self.total -= self._of.pop(who, 0)
