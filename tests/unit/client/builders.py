"""Frames as an nsqd sends them, and conversations without sockets."""

from __future__ import annotations

import struct

from penstock.client.address import Address
from penstock.client.frames import ANSWER, ERROR, MESSAGE, Frames
from penstock.client.handshake import Agreement
from penstock.client.intake import Intake
from penstock.client.message import Message
from penstock.client.subscription import Subscription

AGREEMENT = Agreement(max_rdy_count=2500, msg_timeout=60.0, max_msg_timeout=900.0, version="1.3.0")
NSQD = Address("127.0.0.1", 4150)


def frame(kind: int, data: bytes) -> bytes:
    return struct.pack(">II", len(data) + 4, kind) + data


OK = frame(ANSWER, b"OK")
HEARTBEAT = frame(ANSWER, b"_heartbeat_")


def refusal(text: bytes) -> bytes:
    return frame(ERROR, text)


def id_of(number: int) -> bytes:
    return b"%016x" % number


def delivery(number: int, body: bytes = b"body", attempts: int = 1, timestamp: int = 0) -> bytes:
    return frame(MESSAGE, struct.pack(">QH", timestamp, attempts) + id_of(number) + body)


class Conversation:
    """A consumer's connection: what is sent stands in `sent`."""

    def __init__(
        self,
        intake: Intake,
        *,
        at: float = 0.0,
        most: int = 2500,
        agreement: Agreement = AGREEMENT,
        touches: bool = True,
        round_trip: float = 0.0,
    ) -> None:
        self.sent: list[bytes] = []
        self.ready = 0  # what it was told last
        self.intake = intake
        self.subscription = Subscription(NSQD, agreement, self._send, intake.outcome, touches=touches)
        self._frames = Frames(Message, self.subscription)
        intake.connected(self.subscription, most, round_trip, at)

    def deliver(self, *numbers: int, at: float = 0.0) -> list[Message]:
        """Messages come; the objects that were made of them."""
        self._frames.feed(b"".join(map(delivery, numbers)), at)
        messages, self._frames.messages = self._frames.messages, []
        self.intake.received(self.subscription, messages, at)
        return messages

    def _send(self, data: bytes) -> None:
        self.sent.append(data)
        if data.startswith(b"RDY"):
            self.ready = int(data[4:])
