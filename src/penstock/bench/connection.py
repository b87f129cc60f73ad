"""A client's connection, and the loop that serves many. Knows the wire; no load and no clock but its deadline.

SUB, RDY, ... --ask--> answered      in the set-up, one at a time
loop: received --> the load's own function, once a read --> send
"""

from __future__ import annotations

import json
import select
import socket
from time import monotonic
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from penstock.bench.wire import Frames
from penstock.errors import BenchFailed
from penstock.protocol.inbox import SHARED, Inbox
from penstock.protocol.v2 import MAGIC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from typing_extensions import Buffer

    from penstock.bench.settings import Address

_TIMEOUT: Final = 20.0  # seconds for an answer in the set-up
_shared: Final = bytearray(SHARED)  # a process has one loop


class Client:
    """A socket, and what it did not take yet."""

    def __init__(self, server: Address) -> None:
        self._unsent = b""
        self.wants_write: Callable[[Client, bool], None] | None = None
        try:
            self.socket = socket.create_connection(server, timeout=_TIMEOUT)
        except OSError as error:
            raise BenchFailed(f"{server.host}:{server.port}: {error}") from error
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def fileno(self) -> int:
        return self.socket.fileno()

    def close(self) -> None:
        self.socket.close()

    def receive(self) -> bool:
        """One read; False where that brought nothing to look at."""
        raise NotImplementedError

    def _receive_into(self, room: Buffer) -> int:
        """How many bytes came; 0 where there are none now."""
        try:
            size = self.socket.recv_into(room)
        except BlockingIOError:
            return 0
        except ConnectionError as error:
            raise BenchFailed(f"the server ended a connection: {error}") from error
        if not size:
            raise BenchFailed("the server closed a connection")
        return size

    def send(self, data: bytes) -> None:
        """Now, or when the socket takes it."""
        if self._unsent:
            self._unsent += data
            return
        try:
            sent = self.socket.send(data)
        except BlockingIOError:
            sent = 0
        except ConnectionError as error:
            raise BenchFailed(f"the server ended a connection: {error}") from error
        if sent < len(data):
            self._unsent = data[sent:]
            self._wish_to_write()

    @property
    def has_unsent(self) -> bool:
        return bool(self._unsent)

    def send_rest(self) -> None:
        data, self._unsent = self._unsent, b""
        self.send(data)
        if not self._unsent:
            self._wish_to_write()

    def _wish_to_write(self) -> None:
        if self.wants_write is not None:
            self.wants_write(self, self.has_unsent)


class Connection(Client):
    """One client of NSQ's protocol; `features` are what it says of itself in IDENTIFY."""

    def __init__(self, server: Address, *, with_stamps: bool = False, **features: object) -> None:
        super().__init__(server)
        self.frames = Frames(with_stamps=with_stamps)
        self._inbox = Inbox(_shared)
        asked = json.dumps({"client_id": "bench", **features}).encode()
        self.ask(MAGIC + b"IDENTIFY\n" + len(asked).to_bytes(4, "big") + asked)

    def ask(self, command: bytes) -> None:
        """Send a command and wait for its answer, which is no error."""
        before = self.frames.answers
        try:
            self.socket.sendall(command)
            while self.frames.answers == before:
                self.receive()
        except TimeoutError as error:
            raise BenchFailed(f"no answer to {command[:40]!r}") from error

    def subscribe(self, topic: str, channel: str) -> None:
        self.ask(f"SUB {topic} {channel}\n".encode())

    def receive(self) -> bool:
        """One read; `frames` knows what it brought."""
        inbox, frames = self._inbox, self.frames
        size = self._receive_into(inbox.room())
        if not size:
            return False
        beats = frames.heartbeats
        inbox.received(size)
        inbox.keep(frames.scan(inbox.data, 0, inbox.end), frames.needed)
        if frames.heartbeats != beats:
            self.send(b"NOP\n")
        return True


_Any = TypeVar("_Any", bound=Client)


class Loop(Generic[_Any]):
    """Serves clients until its time is over."""

    def __init__(self, clients: Iterable[_Any], received: Callable[[_Any], None]) -> None:
        """`received` is called once after each read."""
        self._received = received
        self._epoll = select.epoll()
        self._of: dict[int, _Any] = {}
        for each in clients:
            each.socket.setblocking(False)
            each.wants_write = self._wants_write
            self._of[each.fileno()] = each
            self._epoll.register(each.fileno(), select.EPOLLIN)

    def run(self, seconds: float, *, until: Callable[[], bool] | None = None) -> None:
        """For so long, or until it is done."""
        clients, received, poll = self._of, self._received, self._epoll.poll
        deadline = monotonic() + seconds
        while (left := deadline - monotonic()) > 0 and not (until and until()):
            for number, events in poll(min(left, 0.05) if until else left):
                each = clients[number]
                if events & select.EPOLLOUT:
                    each.send_rest()
                if events & ~select.EPOLLOUT and each.receive():
                    received(each)

    def _wants_write(self, client: Client, wants: bool) -> None:
        self._epoll.modify(client.fileno(), select.EPOLLIN | (select.EPOLLOUT if wants else 0))

    def close(self) -> None:
        self._epoll.close()
        for each in self._of.values():
            each.close()
