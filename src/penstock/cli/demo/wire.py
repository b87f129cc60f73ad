"""As much of an NSQ client as the demo needs, over a blocking socket: publish and wait, or take all that comes."""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_HEAD: Final = 8  # size and kind of a frame
_ID: Final = slice(18, 34)  # in a frame with a message, behind its timestamp and attempts
_MESSAGE: Final = 2
_HEARTBEAT: Final = b"_heartbeat_"
_READ: Final = 1 << 18


class Wire:
    """One connection; OSError where it ends."""

    def __init__(self, port: int, timeout: float) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = b""
        self._socket.sendall(b"  V2")

    def close(self) -> None:
        self._socket.close()

    def publish(self, topic: str, bodies: Sequence[bytes]) -> None:
        """All of them in one MPUB, answered when this returns."""
        count = struct.pack(">I", len(bodies))
        self._ask(b"MPUB %s\n%s" % (topic.encode(), _sized(count + b"".join(map(_sized, bodies)))))

    def defer(self, topic: str, delay_ms: int, bodies: Sequence[bytes]) -> None:
        """A DPUB for each, one behind the other, all answered when this returns."""
        command = b"DPUB %s %d\n" % (topic.encode(), delay_ms)
        self._ask(b"".join([command + _sized(body) for body in bodies]), len(bodies))

    def subscribe(self, topic: str, channel: str, ready: int) -> None:
        self._ask(f"SUB {topic} {channel}\n".encode())
        self._socket.sendall(b"RDY %d\n" % ready)

    def messages(self) -> Iterator[list[bytes]]:
        """Bodies, as many as came at once; they are finished when the next ones are asked for."""
        while True:
            ids, bodies = [], []
            for kind, frame in self._frames():
                if kind == _MESSAGE:
                    ids.append(b"FIN %s\n" % frame[_ID])
                    bodies.append(frame[_ID.stop :])
            yield bodies
            self._socket.sendall(b"".join(ids))

    def _ask(self, commands: bytes, answers: int = 1) -> None:
        self._socket.sendall(commands)
        while answers:
            for _, frame in self._frames():
                if frame[_HEAD:] != b"OK":
                    raise OSError(f"{commands[:40]!r} was answered {frame[_HEAD:]!r}")
                answers -= 1

    def _frames(self) -> list[tuple[int, bytes]]:
        """Kind and bytes of what came by now, with its head; heartbeats are answered. Empty where none is whole."""
        if not (more := self._socket.recv(_READ)):
            raise ConnectionResetError("nsqd closed the connection")
        data = self._received + more
        frames = []
        at = 0
        while at + _HEAD <= len(data):
            size, kind = struct.unpack_from(">II", data, at)
            if at + 4 + size > len(data):
                break
            frame = data[at : at + 4 + size]
            at += len(frame)
            if frame[_HEAD:] == _HEARTBEAT:
                self._socket.sendall(b"NOP\n")
            else:
                frames.append((kind, frame))
        self._received = data[at:]
        return frames


def _sized(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data
