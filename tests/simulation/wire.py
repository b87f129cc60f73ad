"""A connection without a socket: bytes to a session, and its frames back when the turn ends. Knows no command."""

from __future__ import annotations

import struct
from collections import deque
from typing import TYPE_CHECKING, NamedTuple, Protocol

from penstock.nsqd.session import Session

if TYPE_CHECKING:
    from tests.simulation.world import World

MESSAGE = 2


class Frame(NamedTuple):
    kind: int
    data: bytes
    ahead: int  # bytes of the stream before the piece that it was written in


class End(Protocol):
    """Who sits at the other end."""

    def given(self, frame: Frame) -> None:
        """The node wrote it."""

    def read(self, frame: Frame) -> None:
        """It arrived."""

    def left(self, unread: list[Frame], *, aborted: bool) -> None:
        """The connection is gone; no byte of these, or of what they were written with, had left the process."""


class Wire:
    """One TCP connection. Of what is written, `window` bytes at most leave the process until the client reads."""

    def __init__(self, world: World, name: str, end: End) -> None:
        self._world = world
        self._end = end
        self._parts: list[bytes] = []
        self._waiting: deque[tuple[int, Frame]] = deque()  # where in the stream each ends, and what was not read yet
        self._sent = 0
        self._read = 0
        self.stalled = False
        self.closed = False
        self.session = Session(world, name, self._parts.append, world.shared)  # type: ignore[arg-type]
        world.wires.append(self)
        world.of_session[self.session] = self
        self.receive(b"  V2")

    def receive(self, data: bytes) -> None:
        """The client's bytes, as many at a time as there is room for."""
        while data and not self.session.ending:
            room = self.session.inbox.room()
            size = min(len(room), len(data))
            room[:size] = data[:size]
            data = data[size:]
            self.session.received(size)

    def flush(self) -> None:
        """What the turn brought goes out, as far as the client reads."""
        parts = self._parts[:]
        self._parts.clear()
        for part in parts:
            self._take(part)
        if not self.stalled:
            self._leave(self._sent)
        self.session.unsent = self._sent - self._read
        if self.session.ended and not self.closed:
            self.close(aborted=False)

    def _take(self, part: bytes) -> None:
        """Frames, all of them whole."""
        at, ahead = 0, self._sent
        while at < len(part):
            size, kind = struct.unpack_from(">II", part, at)
            frame = Frame(kind, part[at + 8 : at + 4 + size], ahead)
            at += 4 + size
            self._waiting.append((ahead + at, frame))
            self._end.given(frame)
        assert at == len(part), "a piece of a frame was written"
        self._sent += at

    def _leave(self, until: int) -> None:
        self._read = until
        while self._waiting and self._waiting[0][0] <= until:
            self._end.read(self._waiting.popleft()[1])

    def read_some(self, size: int) -> None:
        """The client reads so many bytes of what waits."""
        self._leave(min(self._sent, self._read + size))
        session = self.session
        session.unsent = self._sent - self._read
        if session.channel is not None and session.consumer is not None:
            session.channel.wake(session.consumer)
            self._world.pump(session.channel)

    def close(self, *, aborted: bool) -> None:
        """The connection is gone, in order or not."""
        self.closed = True
        world, session = self._world, self.session
        world.wires.remove(self)
        del world.of_session[session]
        session.leave(world.clock.now, aborted=aborted)
        self._end.left([frame for _, frame in self._waiting if frame.ahead >= self._read], aborted=aborted)
        if session.channel is not None and session.home is not None:
            world.node.left(session.home, session.channel)
