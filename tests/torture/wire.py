"""One NSQ connection that says every byte itself, and waits no longer than it is told to."""

from __future__ import annotations

import select
import socket
import struct
from typing import TYPE_CHECKING, Final, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Sequence

MESSAGE: Final = 2
_LINGER_NONE: Final = struct.pack("ii", 1, 0)


class Frame(NamedTuple):
    kind: int
    data: bytes


class Wire:
    """Frames as they come; heartbeats are answered. OSError where the connection is gone."""

    def __init__(self, port: int, *, timeout: float = 10.0) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._rest = b""
        self.send(b"  V2")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def abort(self) -> None:
        """Gone at once, with what was under way."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NONE)
        self._socket.close()

    def half_close(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)

    def frames(self, seconds: float) -> list[Frame]:
        """What one read brings, within so many seconds; nothing where nothing comes."""
        if not select.select([self._socket], [], [], seconds)[0]:
            return []
        came = self._socket.recv(1 << 18)
        if not came:
            raise ConnectionResetError("the node closed it")
        data, at, found = self._rest + came, 0, []
        while len(data) - at >= 8:
            size, kind = struct.unpack_from(">II", data, at)
            if len(data) - at < 4 + size:
                break
            frame = Frame(kind, data[at + 8 : at + 4 + size])
            at += 4 + size
            if frame == (0, b"_heartbeat_"):
                self.send(b"NOP\n")
            else:
                found.append(frame)
        self._rest = data[at:]
        return found

    def answer(self) -> bytes:
        """The next answer or error, on a connection that gets no messages; TimeoutError after ten seconds."""
        for _ in range(10):
            for frame in self.frames(1.0):
                return frame.data
        raise TimeoutError("no answer")


def publish(topic: str, bodies: Sequence[bytes], delay: int | None = None) -> bytes:
    """The command: MPUB where there are several, DPUB where there is a delay (ms)."""
    if len(bodies) == 1:
        line = f"PUB {topic}\n" if delay is None else f"DPUB {topic} {delay}\n"
        return line.encode() + struct.pack(">I", len(bodies[0])) + bodies[0]
    framed = many(bodies)
    return f"MPUB {topic}\n".encode() + struct.pack(">I", len(framed)) + framed


def many(bodies: Sequence[bytes]) -> bytes:
    """The body of an MPUB."""
    return struct.pack(">I", len(bodies)) + b"".join(struct.pack(">I", len(body)) + body for body in bodies)
