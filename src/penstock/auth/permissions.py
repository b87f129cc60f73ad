"""What a client of the TCP port may do, and who knows it. No connection, no file, no server."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable


class Who(NamedTuple):
    """Who shows a secret, which no text shows."""

    secret: bytes
    remote_ip: str
    tls: bool = False
    common_name: str = ""  # of its certificate

    def __repr__(self) -> str:
        return f"Who({self.remote_ip}, tls={self.tls}, {self.common_name!r})"


class Permissions(Protocol):
    """Of a client, as long as they hold."""

    @property
    def identity(self) -> str: ...
    @property
    def identity_url(self) -> str: ...
    @property
    def count(self) -> int: ...

    def hold(self, now: int) -> bool:
        """Else it is time to ask again."""

    def allow(self, topic: str, channel: str) -> bool:
        """To publish to the topic or, with a channel, to subscribe to it."""


class Authority(Protocol):
    """Knows what clients may do."""

    def ask(self, who: Who) -> Permissions | Awaitable[Permissions]:
        """Either raises AuthServerError where nobody can say."""
