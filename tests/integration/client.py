"""A plain NSQ client over a blocking socket: for tests that want to say every byte themselves."""

from __future__ import annotations

import json
import socket
import struct
from typing import NamedTuple, Self


class Message(NamedTuple):
    id: bytes
    attempts: int
    timestamp: int
    body: bytes


class Client:
    """One connection. What comes is sorted into answers and messages; heartbeats are answered."""

    def __init__(self, port: int, *, timeout: float = 10.0) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb")
        self.messages: list[Message] = []
        self.send(b"  V2")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def frame(self) -> tuple[int, bytes]:
        """The next frame; EOFError where the connection ends."""
        while True:
            head = self._file.read(8)
            if len(head) < 8:
                raise EOFError("the connection was closed")
            size, kind = struct.unpack(">II", head)
            data = self._file.read(size - 4)
            if (kind, data) == (0, b"_heartbeat_"):
                self.send(b"NOP\n")
                continue
            return kind, data

    def until_it_ends(self) -> None:
        while True:
            self.frame()

    def answer(self) -> bytes:
        """The next answer or error; messages that come before it are kept."""
        while True:
            kind, data = self.frame()
            if kind != 2:
                return data
            self.messages.append(_message(data))

    def message(self) -> Message:
        if self.messages:
            return self.messages.pop(0)
        kind, data = self.frame()
        if kind != 2:
            raise AssertionError(f"a message was expected, not {data!r}")
        return _message(data)

    def taken(self) -> list[Message]:
        """Messages that came while an answer was waited for."""
        messages, self.messages = self.messages, []
        return messages

    def ask(self, line: str, body: bytes | None = None) -> bytes:
        """Send a command and wait for its answer."""
        self.send(line.encode() + b"\n" + (b"" if body is None else struct.pack(">I", len(body)) + body))
        return self.answer()

    def identify(self, **features: object) -> dict[str, object]:
        found = json.loads(self.ask("IDENTIFY", json.dumps({"feature_negotiation": True, **features}).encode()))
        if not isinstance(found, dict):
            raise TypeError("no object")
        return found

    def publish(self, topic: str, *bodies: bytes) -> bytes:
        if len(bodies) == 1:
            return self.ask(f"PUB {topic}", bodies[0])
        framed = b"".join(struct.pack(">I", len(body)) + body for body in bodies)
        return self.ask(f"MPUB {topic}", struct.pack(">I", len(bodies)) + framed)

    def subscribe(self, topic: str, channel: str, ready: int) -> None:
        if (answer := self.ask(f"SUB {topic} {channel}")) != b"OK":
            raise AssertionError(answer)
        self.send(f"RDY {ready}\n".encode())

    def finish(self, message: Message) -> None:
        self.send(b"FIN " + message.id + b"\n")


def _message(data: bytes) -> Message:
    timestamp, attempts = struct.unpack_from(">QH", data)
    return Message(data[10:26], attempts, timestamp, data[26:])
