"""Sockets that a daemon listens on, by the address that an option says. Knows no loop and no protocol."""

from __future__ import annotations

import os
import socket
from typing import Final

from penstock.options import endpoint

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


def shown(bound: socket.socket) -> str:
    """Where it listens, as a log line says it."""
    name = bound.getsockname()
    if not isinstance(name, tuple):
        return str(name)
    return f"[{name[0]}]:{name[1]}" if ":" in name[0] else f"{name[0]}:{name[1]}"


def port_of(bound: socket.socket | None) -> int:
    """-1 for a unix socket, and for none."""
    name = bound.getsockname() if bound is not None else None
    return name[1] if isinstance(name, tuple) else -1


def remove_socket(address: str) -> None:
    """The file that a unix socket leaves behind."""
    if address and (path := endpoint(address).path) and os.path.exists(path):
        os.unlink(path)
