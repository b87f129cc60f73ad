"""What a load is made of. Knows no socket and no command line."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.errors import BenchFailed


class Address(NamedTuple):
    host: str
    port: int


def address(text: str) -> Address:
    """From `host:port`."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal():
        raise BenchFailed(f"{text} is no host:port")
    return Address(host or "127.0.0.1", int(port))


@dataclass(frozen=True)
class Server:
    """What is measured."""

    tcp: Address
    http: Address | None = None  # to tidy up, and for the loads that speak HTTP
    pid: int | None = None  # to tell its CPU time and memory
    start: str = ""  # the command that runs it, for the loads that start it themselves


@dataclass(frozen=True)
class Settings:
    """The common numbers; each load says which of them it looks at."""

    size: int = 200  # bytes of a message
    batch: int = 200  # messages of an MPUB; 1 is a PUB each
    connections: int = 2
    processes: int = 1
    ready: int = 2500
    seconds: float = 3.0
    messages: int = 1_000_000  # that wait before consumers begin
    rate: int = 1_000  # messages a second, where a load has a rate
    channels: int = 1
    defer: int = 0  # ms
    unbuffered: bool = False  # the server is asked to send each message at once
    beside: bool = False  # while another topic is flooded and drained
    topic: str = field(default_factory=lambda: f"bench_{secrets.token_hex(4)}")

    @property
    def spread(self) -> list[int]:
        """How many connections each process has."""
        processes = min(self.processes, self.connections)
        return [len(range(number, self.connections, processes)) for number in range(processes)]
