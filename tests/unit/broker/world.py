"""A topic over a log in memory, and consumers that remember what they were given."""

from __future__ import annotations

import random
import struct
from array import array
from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.channel import Surroundings
from penstock.broker.consumer import Consumer
from penstock.broker.topic import Topic
from penstock.log.birth import Birth
from penstock.log.memory_log import MemoryLog
from penstock.log.segment import Block

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Buffer

    from penstock.broker.channel import Channel

S = 10**9
BASE = 0x1000
BIRTH = Birth("t", "0" * 16, BASE)


class Given(NamedTuple):
    """A message as a client gets it."""

    body: bytes
    attempts: int
    offset: int


class Hand:
    """A consumer's sink: what it was given, none of it unsent unless a test says so."""

    def __init__(self) -> None:
        self.unsent = 0
        self.given: list[Given] = []

    def send(self, frames: Buffer, offsets: Sequence[int]) -> None:
        data, at, found = bytes(frames), 0, []
        while at < len(data):
            size, kind, _, attempts = struct.unpack_from(">IIQH", data, at)
            assert kind == 2
            offset = int(data[at + 18 : at + 34], 16) - BASE
            found.append(Given(data[at + 34 : at + 4 + size], attempts, offset))
            at += 4 + size
        assert [message.offset for message in found] == list(offsets)
        self.given += found

    def end(self) -> None:
        self.unsent = 0

    @property
    def bodies(self) -> list[bytes]:
        return [message.body for message in self.given]


class World:
    """One topic; time stands until it is moved."""

    def __init__(self, *, bound: int = 10_000, ephemeral: bool = False) -> None:
        self.log = MemoryLog(BIRTH, 1 << 40)
        self.cold = False
        self.now = 0
        name = "t#ephemeral" if ephemeral else "t"
        self.alarms: dict[Channel, int] = {}
        surroundings = Surroundings(self._block, self._set_alarm, random.Random(1))
        self.topic = Topic(name, routed=0, committed=0, bound=bound, surroundings=surroundings)

    def _set_alarm(self, when: int, channel: Channel) -> None:
        self.alarms[channel] = when

    def _block(self, offset: int) -> Block | None:
        if self.cold:
            return None
        return self.log.read(offset) or Block(self.log.end, self.log.end, b"")

    def publish(self, *bodies: bytes) -> None:
        self.log.append(bodies, self.now)
        self.topic.advance(self.log.end, self.now)

    def channel(self, name: str = "c") -> Channel:
        channel = self.topic.add_channel(name, self.now)
        self.topic.route(self.now)
        return channel

    def consumer(self, channel: Channel, ready: int, *, timeout: int = 60 * S, sample_rate: int = 0) -> Consumer:
        consumer = Consumer(Hand(), message_timeout=timeout, sample_rate=sample_rate)
        channel.join(consumer)
        channel.ready(consumer, ready)
        channel.pump(self.now)
        return consumer

    def pass_time(self, to: int) -> None:
        """Channels are woken when they asked for it, and not otherwise."""
        while (when := min(self.alarms.values(), default=to + 1)) <= to:
            self.now = max(self.now, when)
            for channel in [channel for channel, alarm in self.alarms.items() if alarm <= self.now]:
                del self.alarms[channel]
                channel.tick(self.now)
                channel.pump(self.now)
        self.now = to

    def finish(self, channel: Channel, consumer: Consumer, *offsets: int) -> list[int] | None:
        failed = channel.finish(consumer, array("Q", [BASE + offset for offset in offsets]), BASE)
        channel.pump(self.now)
        return failed


def hand(consumer: Consumer) -> Hand:
    assert isinstance(consumer.sink, Hand)
    return consumer.sink
