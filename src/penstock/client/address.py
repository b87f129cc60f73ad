"""`host:port`, as users write it and as nsqlookupd says it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def address(text: str, default_port: int) -> Address:
    """From `host`, `host:port` or `[::1]:port`, with or without `http://`."""
    rest = text.removeprefix("http://").rstrip("/")
    if rest.startswith("["):
        host, bracket, port = rest[1:].partition("]")
        colon, port = port[:1], port[1:]
        good = bool(bracket) and colon in ("", ":")
    else:
        host, colon, port = rest.partition(":")
        good = True
    if colon:
        good = good and port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16
    if not good or not host or "/" in rest:
        raise ValueError(f"{text!r} is no address, such as 127.0.0.1:{default_port}")
    return Address(host, int(port) if colon else default_port)


def addresses(given: str | Iterable[str] | None, default_port: int) -> tuple[Address, ...]:
    """One, several, separated by commas or not, or none; each once."""
    texts = given.split(",") if isinstance(given, str) else given or ()
    return tuple(dict.fromkeys(address(text.strip(), default_port) for text in texts))
