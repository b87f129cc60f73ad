"""Where a daemon listens: `host:port`, or the path of a unix socket. Opens nothing, resolves no host."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from penstock.options.kinds import Text

_SPLIT: Final = re.compile(r"(?:\[(?P<literal>[^][]*)\]|(?P<name>[^][:/]*)):(?P<port>[^][:/]*)")
_NO_PATH: Final = re.compile(r"[0-9.]*|[^/]*[][:][^/]*")


class Endpoint(NamedTuple):
    """A host and a port, or a path where the other two mean nothing.

    An empty host is every address of the machine, IPv4 and IPv6: as in Go, also what `0.0.0.0` and `[::]` ask for.
    """

    host: str
    port: int
    path: str = ""


def endpoint(text: str) -> Endpoint:
    """What an address says; ValueError with a sentence when it says nothing."""
    if (address := _SPLIT.fullmatch(text)) is not None:
        host = address["literal"] or address["name"] or ""
        return Endpoint("" if host in ("0.0.0.0", "::") else host, _port(address["port"]))
    if _NO_PATH.fullmatch(text):  # NSQ makes a unix socket of the name `127.0.0.1`, which nobody means
        raise ValueError(f"{text!r} is neither host:port, [host]:port nor the path of a unix socket")
    return Endpoint("", 0, text)


def _port(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= 0xFFFF:
        return int(text)
    return _service(text) if text else 0


def _service(name: str) -> int:
    import socket

    try:
        return socket.getservbyname(name, "tcp")
    except OSError:
        raise ValueError(f"{name!r} is no port, which is a number up to 65535 or a service's name") from None


class Address(Text):
    """Kept as it was written; `endpoint` gives its parts. An empty one is off."""

    name = "address"

    def parse(self, text: str) -> str:
        if text:
            endpoint(text)
        return text


ADDRESS: Final = Address()
