"""What stands between a client's commands and the session: TLS first, AUTH, and what it may do. No socket, no clock.

    command --> lets --> carried out now
                 '--> held until an authority has answered, and then again --> carried out, or an error

A session has a gate where TLS is required or an authority is asked; one without it pays nothing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from penstock.auth.permissions import Who
from penstock.errors import AuthError, AuthFailed, AuthFirst, AuthServerError, Invalid, Unauthorized
from penstock.protocol.commands import (
    Auth,
    Cls,
    Dpub,
    Fins,
    Identify,
    Mpub,
    Opening,
    Publish,
    Pubs,
    Rdy,
    Req,
    Sub,
    Touch,
)
from penstock.protocol.frames import answer
from penstock.protocol.quoted import quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.auth.permissions import Permissions
    from penstock.nsqd.session import Session
    from penstock.protocol.commands import Command

    Ask = Callable[[Who, Callable[[Permissions | Exception], None]], None]

# The name of each command, and whether it needs a permission: what is not here is let through by nobody.
NEEDS: Final[dict[type, tuple[str, bool]]] = {
    Identify: ("IDENTIFY", False),
    Auth: ("AUTH", False),
    Sub: ("SUB", True),
    Pubs: ("PUB", True),
    Mpub: ("MPUB", True),
    Opening: ("MPUB", True),
    Dpub: ("DPUB", True),
    Rdy: ("RDY", False),  # these have a subscription
    Fins: ("FIN", False),
    Req: ("REQ", False),
    Touch: ("TOUCH", False),
    Cls: ("CLS", False),
}


class Gate:
    """Of one session."""

    def __init__(self, session: Session, ask: Ask | None, *, tls_required: bool) -> None:
        """`ask` tells an authority who shows which secret, and gives what it answers, or what went wrong."""
        self._session = session
        self._ask = ask
        self._tls_required = tls_required
        self._secret = b""
        self._held: Command | None = None
        self.permissions: Permissions | None = None

    @property
    def authed(self) -> bool:
        return self.permissions is not None and self.permissions.count > 0

    @property
    def asks(self) -> bool:
        """An authority, for which AUTH is."""
        return self._ask is not None

    def lets(self, command: Command) -> bool:
        """Whether it may be carried out now; ClientError where it may not, else it is held."""
        name, needs = NEEDS[type(command)]
        if self._tls_required and self._session.tls is None and type(command) is not Identify:
            raise Invalid(f"cannot {name} in current state (TLS required)")
        if self._ask is None or not needs:
            return True
        if self.permissions is None or not self.authed:
            raise AuthFirst(f"AUTH required before {name}")
        if not self.permissions.hold(self._session.service.clock.now):
            self._held = _apart(command)
            self._hold(self._asked_again)
            return False
        topic, channel = _about(command)
        if not self.permissions.allow(topic, channel):
            raise Unauthorized(f"AUTH failed for {name} on {quoted(topic.encode())} {quoted(channel.encode())}")
        return True

    # --- AUTH

    def auth(self, secret: bytes) -> None:
        """The client shows a secret."""
        if self.authed:
            raise Invalid("AUTH already set")
        self._secret = secret
        self._hold(self._asked)

    def _hold(self, then: Callable[[Permissions | Exception], None]) -> None:
        session = self._session
        session.held = True
        host = session.name.rpartition(":")[0].strip("[]")
        name = "" if session.tls is None else session.tls.common_name
        if self._ask is not None:
            self._ask(Who(self._secret, host, session.tls is not None, name), then)

    def _asked(self, found: Permissions | Exception) -> None:
        self._session.go_on(lambda: self._authorized(found))

    def _authorized(self, found: Permissions | Exception) -> None:
        permissions = self.permissions = self._judged(found)
        if not permissions.count:
            raise Unauthorized("AUTH no authorizations found")
        told = {
            "identity": permissions.identity,
            "identity_url": permissions.identity_url,
            "permission_count": permissions.count,
        }
        self._session.answer(answer(json.dumps(told, separators=(",", ":")).encode()))

    def _asked_again(self, found: Permissions | Exception) -> None:
        self._session.go_on(lambda: self._authorized_again(found))

    def _authorized_again(self, found: Permissions | Exception) -> None:
        self.permissions = self._judged(found)
        command, self._held = self._held, None
        if command is not None:
            self._session.handle(command)

    def _judged(self, found: Permissions | Exception) -> Permissions:
        """What went wrong is for the log: a stranger is not told."""
        if not isinstance(found, Exception):
            return found
        self._session.service.logger.warn("PROTOCOL(V2): [%s] AUTH failed %s", self._session.name, found)
        if isinstance(found, AuthServerError):
            raise AuthFailed("AUTH failed")
        raise AuthError("AUTH error")


def _about(command: Any) -> tuple[str, str]:
    """Topic and channel; no channel for what is published."""
    return command.topic, command.channel if isinstance(command, Sub) else ""


def _apart(command: Command) -> Command:
    """What it is when the bytes that it came in are gone."""
    if not isinstance(command, Publish):
        return command
    start, stop = command.start, command.stop
    body = command.data[start:stop]
    return type(command)(command.topic, body, 0, stop - start, command.count, command.skip)
