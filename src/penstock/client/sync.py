"""Publishes over a blocking socket, for scripts and for tasks that have no loop. Knows no asyncio."""

from __future__ import annotations

import select
import socket
import struct
import threading
from typing import TYPE_CHECKING, Final

from penstock.client.address import addresses
from penstock.client.frames import ANSWER, ERROR
from penstock.client.given import as_bodies, as_body, as_ms, topic_name
from penstock.client.handshake import Ask, Secure, Wishes, handshake
from penstock.errors import AnswerLost, Closed, HandshakeFailed, NotSent, PenstockError, answered_error
from penstock.protocol import requests

if TYPE_CHECKING:
    import ssl as tls
    from collections.abc import Iterable
    from datetime import timedelta
    from types import TracebackType

    from typing_extensions import Buffer

    from penstock.client.address import Address
    from penstock.client.handshake import Compression, Step
    from penstock.stream.layer import Layer

_READ: Final = 64 << 10
_LARGEST: Final = 1 << 20  # bytes of an answer
_HEAD: Final = struct.Struct(">II")


class SyncProducer:
    """Publishes to an nsqd; with several, to the first that can be reached.

        with SyncProducer("127.0.0.1:4150") as producer:
            producer.publish("events", b"hello")

    It connects when something is to be published, and again where the connection ended meanwhile. Each call returns
    when nsqd has answered OK, and raises NotSent, AnswerLost or what nsqd says. Threads may share it: they take turns.
    """

    def __init__(
        self,
        nsqd: str | Iterable[str],
        *,
        timeout: float = 30.0,
        ssl: tls.SSLContext | None = None,
        compression: Compression | None = None,
        secret: str | bytes | None = None,
        client_id: str | None = None,
    ) -> None:
        """`timeout` is for a connection, and for an answer, in seconds."""
        self._addresses = addresses(nsqd, 4150)
        if not self._addresses:
            raise ValueError("a producer needs an nsqd")
        self._wishes = Wishes(
            tls=ssl is not None,
            compression=compression,
            secret=secret.encode() if isinstance(secret, str) else secret,
            client_id=client_id,
            heartbeat_interval=None,  # nobody would answer them between two calls
        )
        self._timeout = timeout
        self._ssl = ssl
        self._conversation: _Conversation | None = None
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> SyncProducer:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _where: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._drop()

    def publish(self, topic: str, body: Buffer) -> None:
        self._do(requests.pub(topic_name(topic), as_body(body)))

    def publish_many(self, topic: str, bodies: Iterable[Buffer]) -> None:
        """All of them in one MPUB: all or nothing."""
        if many := as_bodies(bodies):
            self._do(requests.mpub(topic_name(topic), many))

    def defer(self, topic: str, body: Buffer, delay: float | timedelta) -> None:
        """For consumers to be given after so many seconds."""
        self._do(requests.dpub(topic_name(topic), as_ms(delay), as_body(body)))

    def _do(self, command: bytes) -> None:
        with self._lock:
            if self._closed:
                raise Closed("this producer was closed")
            conversation = self._connected()
            try:
                answer = conversation.ask(command)
            except PenstockError:
                self._drop()  # nsqd ends a connection with an error
                raise
            except OSError as error:
                self._drop()
                raise AnswerLost(f"the message may be published, or not: {conversation.address}: {error}") from error
            if answer != b"OK":
                self._drop()
                raise HandshakeFailed(f"no nsqd: it answers {answer[:60]!r}")

    def _connected(self) -> _Conversation:
        if self._conversation is not None and self._conversation.is_over:
            self._drop()
        if self._conversation is None:
            self._conversation = self._connect()
        return self._conversation

    def _connect(self) -> _Conversation:
        problems = []
        for address in self._addresses:
            try:
                return _Conversation(address, self._wishes, self._ssl, self._timeout)
            except OSError as error:
                problems.append(f"{address}: {error}")
        raise NotSent("; ".join(problems))

    def _drop(self) -> None:
        if self._conversation is not None:
            self._conversation.close()
            self._conversation = None


class _Conversation:
    """One connection that was agreed on."""

    def __init__(self, address: Address, wishes: Wishes, ssl: tls.SSLContext | None, timeout: float) -> None:
        self.address = address
        self._received = b""
        self._layer: Layer | None = None
        self._socket: socket.socket = socket.create_connection(address, timeout)
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._greet(wishes, ssl)
        except BaseException:
            self._socket.close()
            raise

    def close(self) -> None:
        self._socket.close()

    @property
    def is_over(self) -> bool:
        """Whether nsqd ended it meanwhile."""
        return bool(select.select([self._socket], [], [], 0)[0])  # it says nothing unasked

    def ask(self, command: bytes) -> bytes:
        """Its answer; what nsqd calls an error is raised, and OSError where the connection ends."""
        if command:
            self._socket.sendall(command if self._layer is None else self._layer.encode(command))
        size, kind = _HEAD.unpack(self._take(_HEAD.size))
        if not 4 <= size <= _LARGEST or kind not in (ANSWER, ERROR):
            raise HandshakeFailed(f"no nsqd: it answers with {self._received[:20]!r}")
        data = self._take(size - 4)
        if kind == ERROR:
            raise answered_error(data)
        return data

    def _take(self, size: int) -> bytes:
        while len(self._received) < size:
            data = self._socket.recv(_READ)
            if not data:
                raise ConnectionResetError("nsqd closed the connection")
            self._received += data if self._layer is None else b"".join(self._layer.decode(data))
        taken, self._received = self._received[:size], self._received[size:]
        return taken

    def _greet(self, wishes: Wishes, ssl: tls.SSLContext | None) -> None:
        steps = handshake(wishes)
        step = next(steps)
        while True:
            answer = self._step(step, ssl)
            try:
                step = steps.send(answer)
            except StopIteration:
                return

    def _step(self, step: Step, ssl: tls.SSLContext | None) -> bytes:
        if isinstance(step, Ask):
            return self.ask(step.data)
        if isinstance(step, Secure):
            if ssl is None:
                raise HandshakeFailed("this nsqd wants TLS, and no ssl context was given")
            self._socket = ssl.wrap_socket(self._socket, server_hostname=self.address.host)
        else:
            self._layer = step.layer
            self._received = b"".join(step.layer.decode(self._received))  # its answer may have come with the last one
        return b""
