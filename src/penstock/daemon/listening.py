"""Sockets that a daemon listens on, by the address that an option says, and how both ends are shown."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import TYPE_CHECKING, Any, Final

from penstock.options import endpoint

if TYPE_CHECKING:
    from collections.abc import Callable

BACKLOG: Final = 4096  # with 100, a burst of clients waits for seconds


def bind(address: str) -> socket.socket:
    """A socket bound to the address: every one of the machine's where no host is named."""
    where = endpoint(address)
    if where.path:
        if os.path.exists(where.path):
            os.unlink(where.path)
        bound = socket.socket(socket.AF_UNIX)
        bound.bind(where.path)
        return bound
    if not where.host and socket.has_dualstack_ipv6():
        return socket.create_server(("", where.port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG)
    family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
    return socket.create_server((where.host, where.port), family=family, backlog=BACKLOG)


async def accept(bound: socket.socket, connection: Callable[[], asyncio.BaseProtocol]) -> asyncio.Server:
    """Clients are taken from it from now on."""
    loop = asyncio.get_running_loop()
    create = loop.create_unix_server if bound.family == socket.AF_UNIX else loop.create_server
    return await create(connection, sock=bound, backlog=BACKLOG)


def shown(bound: socket.socket) -> str:
    """Where it listens, as a log line says it."""
    name = bound.getsockname()
    return _shown(name) if isinstance(name, tuple) else str(name)


def shown_peer(name: object) -> str:
    """Who is connected, by the name of the other end: as Go writes it, so that operators and tools read it."""
    return _shown(name) if isinstance(name, tuple) else "@"


def _shown(name: tuple[Any, ...]) -> str:
    host = name[0].removeprefix("::ffff:")  # over IPv4 to a socket for both
    return f"[{host}]:{name[1]}" if ":" in host else f"{host}:{name[1]}"


def port_of(bound: socket.socket | None) -> int:
    """-1 for a unix socket, and for none."""
    name = bound.getsockname() if bound is not None else None
    return name[1] if isinstance(name, tuple) else -1


def remove_socket(address: str) -> None:
    """The file that a unix socket leaves behind."""
    if address and (path := endpoint(address).path) and os.path.exists(path):
        os.unlink(path)
