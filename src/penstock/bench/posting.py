"""Publishes over HTTP on connections that stay open. Knows as much of HTTP as an nsqd answers."""

from __future__ import annotations

import random
import re
from time import monotonic, monotonic_ns
from typing import TYPE_CHECKING, Final

from penstock.bench.connection import Client, Loop
from penstock.bench.crew import Outcome
from penstock.errors import BenchFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.bench.settings import Address, Settings

_LENGTH: Final = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_room: Final = bytearray(64 << 10)  # a process has one loop


class HttpClient(Client):
    """One request at a time."""

    asked = 0  # when, in ns
    _answer = b""
    _good = b""  # the last one that was looked at: for a second all are the same, and need no second look

    def receive(self) -> bool:
        """Whether the answer is whole; it is to be a 200."""
        self._answer += memoryview(_room)[: self._receive_into(_room)]
        if self._answer == self._good:
            self._answer = b""
            return True
        return self._look()

    def _look(self) -> bool:
        head, end, body = self._answer.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not end or (length and len(body) < int(length[1])):
            return False
        if not head.startswith(b"HTTP/1.1 200"):
            raise BenchFailed(f"the server answered {self._answer[:200].decode('latin-1')}")
        self._good, self._answer = self._answer, b""
        return True


def poster(server: Address, settings: Settings, connections: int, *, ready: Callable[[], None]) -> Outcome:
    """The next request when one is answered, on each connection; each is timed."""
    request, batch = _request(settings), settings.batch
    outcome = Outcome()

    def send(client: HttpClient) -> None:
        client.asked = monotonic_ns()
        client.send(request)

    def answered(client: HttpClient) -> None:
        outcome.messages += batch
        outcome.latencies.add(monotonic_ns() - client.asked)
        send(client)

    clients = [HttpClient(server) for _ in range(connections)]
    loop = Loop(clients, answered)
    ready()
    for client in clients:
        send(client)
    loop.run(settings.seconds)
    outcome.ended = monotonic()
    loop.close()
    return outcome


def _request(settings: Settings) -> bytes:
    chance = random.Random(1)
    bodies = [chance.randbytes(settings.size) for _ in range(settings.batch)]
    path, body = f"/pub?topic={settings.topic}", bodies[0]
    if len(bodies) > 1:
        path = f"/mpub?topic={settings.topic}&binary=true"
        body = len(bodies).to_bytes(4, "big") + b"".join(len(each).to_bytes(4, "big") + each for each in bodies)
    return f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
