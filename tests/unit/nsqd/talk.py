"""Clients of a node without a socket: what they say and what they are told, turn by turn. Stands for the service."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

from penstock.nsqd.session import Session
from penstock.protocol.identify import Agreement, Offer
from penstock.protocol.parser import Limits
from tests.unit.nsqd.world import S, World

if TYPE_CHECKING:
    from penstock.broker.channel import Channel
    from penstock.log.files import Files

_ID = re.compile(rb"[0-9a-f]{16}")


class Desk:
    """What the sessions of a node share."""

    def __init__(self, files: Files | None = None, /, **options: object) -> None:
        self.world = World(files, **options)
        self.options = asked = self.world.options
        self.node, self.clock, self.logger = self.world.node, self.world.clock, self.world.node.logger
        self.shared = bytearray(1 << 16)
        self.limits = Limits(max_msg_size=asked.max_msg_size, max_body_size=asked.max_body_size)
        self.offer = Offer(
            max_rdy_count=asked.max_rdy_count,
            max_msg_timeout=asked.max_msg_timeout,
            max_heartbeat_interval=asked.max_heartbeat_interval,
            min_output_buffer_timeout=asked.min_output_buffer_timeout,
            max_output_buffer_timeout=asked.max_output_buffer_timeout,
            max_output_buffer_size=asked.max_output_buffer_size,
            max_deflate_level=asked.max_deflate_level,
        )
        self.defaults = Agreement(heartbeat_interval=30 * S, msg_timeout=asked.msg_timeout, output_buffer_timeout=0)
        self.of_session: dict[Session, Talk] = {}
        self._pumping: dict[Channel, None] = {}
        self.late = 0  # ns that this turn has lasted when the clock is read in it

    def read_clock(self) -> None:
        self.world.pass_unseen(self.late)
        self.late = 0

    def pump(self, channel: Channel) -> None:
        self._pumping[channel] = None

    def beats(self, session: Session) -> None:
        """Nobody's heart beats here."""

    def outgoing(self, talk: Talk) -> None:
        """What a session writes is heard at once."""

    def turn(self) -> None:
        self.node.turn()
        while self._pumping:
            self.node.pump(self._pumping.popitem()[0])


class Talk:
    """One client."""

    def __init__(self, desk: Desk, name: str = "10.0.0.1:5000") -> None:
        self._desk = desk
        self._came: list[bytes] = []
        self.ids: list[bytes] = []  # of the messages that it got
        self.session = Session(desk, name, self._came.append, desk.shared)  # type: ignore[arg-type]
        desk.of_session[self.session] = self
        self.say(b"  V2")

    def say(self, data: bytes) -> list[bytes]:
        """A turn of the loop: what came of it, messages as their attempts and body. `{n}` is the id of the nth."""
        data = re.sub(rb"\{(\d)\}", lambda found: self.ids[int(found[1])], data)
        inbox = self.session.inbox
        while data and not self.session.ending:
            room = inbox.room()
            size = min(len(room), len(data))
            room[:size] = data[:size]
            data = data[size:]
            self.session.received(size)
        self._desk.turn()
        return self.heard()

    def heard(self) -> list[bytes]:
        """What it was told since it was asked last."""
        stream, found = b"".join(self._came), []
        self._came.clear()
        while stream:
            size, kind = struct.unpack_from(">II", stream)
            data, stream = stream[8 : 4 + size], stream[4 + size :]
            found.append(self._message(data) if kind == 2 else _ID.sub(b"<id>", data))
        return found

    def _message(self, data: bytes) -> bytes:
        if data[10:26] not in self.ids:
            self.ids.append(data[10:26])
        return b"%d " % int.from_bytes(data[8:10], "big") + data[26:]


def sized(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body


def pub(topic: str, body: bytes) -> bytes:
    return f"PUB {topic}\n".encode() + sized(body)
