"""An nsqd and an nsqlookupd in the test's own loop, which answer as the test says."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeAlias, TypeVar

import uvloop

from penstock.stream import Deflate, Layer, Snappy
from tests.unit.client.builders import OK, delivery, frame, refusal

T = TypeVar("T")

IDENTIFIED = {"max_rdy_count": 2500, "msg_timeout": 60_000, "max_msg_timeout": 900_000, "version": "1.3.0"}
_WITH_BODY = (b"IDENTIFY", b"AUTH", b"PUB", b"MPUB", b"DPUB")


Run: TypeAlias = Callable[[Coroutine[Any, Any, None]], None]  # plays a scene

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}


def run(coroutine: Coroutine[Any, Any, T], loop: str = "asyncio") -> T:
    """To its end, or for as long as no test takes."""

    async def main() -> T:
        async with asyncio.timeout(20):
            return await coroutine

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        return runner.run(main())


class Peer:
    """A client, through what was agreed on."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._layer: Layer | None = None
        self._received = b""

    async def take(self, size: int) -> bytes:
        while len(self._received) < size:
            await self._receive()
        taken, self._received = self._received[:size], self._received[size:]
        return taken

    async def line(self) -> bytes:
        while b"\n" not in self._received:
            await self._receive()
        return (await self.take(self._received.index(b"\n") + 1))[:-1]

    async def _receive(self) -> None:
        data = await self._reader.read(1 << 16)
        if not data:
            raise EOFError
        self._received += data if self._layer is None else b"".join(self._layer.decode(data))

    def write(self, data: bytes) -> None:
        self._writer.write(data if self._layer is None else self._layer.encode(data))

    async def agree(self, said: dict[str, object], tls: ssl.SSLContext | None) -> None:
        """Answer IDENTIFY, and each change of the stream in its new form."""
        self.write(frame(0, json.dumps(said).encode()))
        if tls is not None:
            await self._writer.start_tls(tls)
            self.write(OK)
        if said.get("deflate") or said.get("snappy"):
            self._layer = Snappy() if said.get("snappy") else Deflate(6)
            self.write(OK)

    def abort(self) -> None:
        self._writer.transport.abort()

    def close(self) -> None:
        self._writer.close()


class FakeNsqd:
    """Notes each command; `answer` says what is answered to one that publishes: None is nothing."""

    def __init__(self, *, tls: ssl.SSLContext | None = None, **identified: object) -> None:
        self._tls = tls
        self.commands: list[tuple[bytes, bytes]] = []
        self.answer: Callable[[bytes, bytes], bytes | None] = lambda _line, _body: OK
        self._identified = {**IDENTIFIED, **identified, "tls_v1": tls is not None}
        self._peers: list[Peer] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._server: asyncio.Server | None = None
        self.port = 0

    async def __aenter__(self) -> FakeNsqd:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """At the same port as before, if there was one."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        self.drop()
        await asyncio.gather(*self._tasks)

    def drop(self) -> None:
        """As when the process is killed."""
        for peer in self._peers:
            peer.abort()
        self._peers.clear()

    def deliver(self, *numbers: int, body: bytes = b"body", attempts: int = 1) -> None:
        """To the newest connection."""
        self.send(b"".join(delivery(number, body, attempts) for number in numbers))

    def send(self, data: bytes) -> None:
        self._peers[-1].write(data)

    def lines(self, word: bytes) -> list[bytes]:
        return [line for line, _ in self.commands if line.split(b" ")[0] == word]

    async def seen(self, word: bytes, count: int = 1) -> list[bytes]:
        """Once that many of these commands came."""
        while len(self.lines(word)) < count:
            self._changed.clear()
            await self._changed.wait()
        return self.lines(word)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
        peer = Peer(reader, writer)
        self._peers.append(peer)
        with suppress(EOFError, OSError):
            await peer.take(4)
            while True:
                await self._command(peer)
        if peer in self._peers:
            self._peers.remove(peer)
        peer.close()

    async def _command(self, peer: Peer) -> None:
        line = await peer.line()
        word = line.split(b" ")[0]
        body = b""
        if word in _WITH_BODY:
            body = await peer.take(int.from_bytes(await peer.take(4), "big"))
        answer = None
        if word == b"IDENTIFY":
            await peer.agree(self._identified, self._tls)
        elif word in (b"AUTH", b"SUB"):
            answer = OK
        elif word == b"CLS":
            answer = frame(0, b"CLOSE_WAIT")
        elif word in _WITH_BODY:
            answer = self.answer(line, body)
        if answer:
            peer.write(answer)
        self.commands.append((line, body))
        self._changed.set()
        if answer and answer[7] == 1:
            peer.close()


def refusing(bad: bytes, text: bytes = b"E_BAD_MESSAGE message too big") -> Callable[[bytes, bytes], bytes]:
    """An answer to all that has not this in it."""
    return lambda _line, body: refusal(text) if bad in body else OK


class FakeLookupd:
    """Names the nsqd in `nodes`; with `revisions`, it holds an answer back while nothing is new."""

    def __init__(self, *nodes: FakeNsqd, revisions: bool = False) -> None:
        self.nodes = list(nodes)
        self.targets: list[str] = []
        self._revisions = revisions
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    async def __aenter__(self) -> FakeLookupd:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def register(self, *nodes: FakeNsqd) -> None:
        async with self._changed:
            self.nodes.extend(nodes)
            self._changed.notify_all()

    async def asked(self, count: int) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.targets) >= count)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
        target = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
        async with self._changed:
            self.targets.append(target)
            self._changed.notify_all()
            if self._revisions and f"since={len(self.nodes)}" in target:
                known = len(self.nodes)
                await self._changed.wait_for(lambda: len(self.nodes) != known)
        head = f"X-Penstock-Revision: {len(self.nodes)}\r\n" if self._revisions else ""
        body = json.dumps({"producers": [self._producer(node) for node in self.nodes]})
        writer.write(f"HTTP/1.1 200 OK\r\n{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        with suppress(ConnectionError):
            await writer.drain()
        writer.close()

    def _producer(self, node: FakeNsqd) -> dict[str, object]:
        topics = ["events"]
        return {"broadcast_address": "127.0.0.1", "tcp_port": node.port, "topics": topics, "tombstones": [False]}


async def soon(ready: Callable[[], bool]) -> None:
    """Turns of the loop until it is so."""
    while not ready():
        await asyncio.sleep(0)


async def refused(awaited: Awaitable[object]) -> BaseException:
    """What it raises."""
    try:
        await awaited
    except Exception as error:  # noqa: BLE001  the test looks at it
        return error
    raise AssertionError("nothing was raised")
