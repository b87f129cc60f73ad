"""Producers and consumers of the demo: what was answered OK, and what each channel got."""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from penstock.cli.demo.events import TOPIC, event, number_of
from penstock.client import Consumer, Producer
from penstock.errors import AnswerLost, NotSent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from penstock.cli.demo.nodes import Node, Nodes

CHANNELS: Final = ("billing", "statistics")
PRODUCERS: Final = 3
AT_ONCE: Final = 200  # events in an MPUB
FOREIGN: Final = 50  # of so many events, pynsq publishes one
QUIET: Final = 20.0  # seconds without a message, until none is expected any more
READY: Final = 1_000
LOOK: Final = 0.1

_PYNSQ: Final = """
import sys, nsq, tornado.ioloop
from penstock.cli.demo.events import TOPIC, event
host, port, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
writer = nsq.Writer([f"{host}:{port}"])
left = [event(number) for number in range(first, first + count)]
def go(connection=None, data=b"OK"):
    if isinstance(data, Exception):
        sys.exit(str(data))
    batch = left[:200]
    del left[:200]
    if batch:
        writer.mpub(TOPIC, batch, callback=go)
    else:
        tornado.ioloop.IOLoop.current().stop()
tornado.ioloop.IOLoop.current().call_later(0.5, go)
nsq.run()
"""


class Traffic:
    """Numbers of events: those that were answered OK, and those that came, by channel."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self.answered: set[int] = set()
        self.came: dict[str, Counter[int]] = {name: Counter() for name in CHANNELS}
        self.sent_again = 0
        self.seconds_in = self.seconds_out = self.seconds_gone = 0.0
        self._published = False
        self.foreign = importlib.util.find_spec("nsq") is not None

    async def run(self, count: int, halfway: Callable[[], Node]) -> None:
        """Publish so many events while the channels are consumed; `halfway` kills a node."""
        began = time.monotonic()
        consuming = [asyncio.create_task(self._consume(name)) for name in CHANNELS]
        own = count - count // FOREIGN if self.foreign else count
        shares = [range(first, own, PRODUCERS) for first in range(PRODUCERS)]
        producing = [asyncio.create_task(self._publish(share)) for share in shares]
        if self.foreign:
            producing.append(asyncio.create_task(self._publish_with_pynsq(range(own, count))))
        while len(self.answered) < count // 2:
            await asyncio.sleep(0.01)
        victim, gone = halfway(), time.monotonic()
        await asyncio.to_thread(self._nodes.wait_for, victim)
        self.seconds_gone = time.monotonic() - gone
        await asyncio.gather(*producing)
        self.seconds_in = time.monotonic() - began
        self._published = True
        await asyncio.gather(*consuming)
        self.seconds_out = time.monotonic() - began

    async def _publish(self, numbers: Iterable[int]) -> None:
        left = list(numbers)
        async with Producer([node.tcp for node in self._nodes.nsqd]) as producer:
            while left:
                batch, left = left[:AT_ONCE], left[AT_ONCE:]
                while True:
                    try:
                        await producer.publish_many(TOPIC, [event(number) for number in batch])
                        break
                    except (AnswerLost, NotSent):  # whether it is there is unknown: so once more
                        self.sent_again += len(batch)
                self.answered.update(batch)

    async def _publish_with_pynsq(self, numbers: range) -> None:
        host, _, port = self._nodes.nsqd[0].tcp.rpartition(":")
        words = [sys.executable, "-W", "ignore", "-c", _PYNSQ, host, port, str(numbers.start), str(len(numbers))]
        process = await asyncio.create_subprocess_exec(*words, stderr=subprocess.DEVNULL)
        if await process.wait() == 0:
            self.answered.update(numbers)

    async def _consume(self, channel: str) -> None:
        consumer = Consumer(TOPIC, channel, lookupd=self._nodes.lookupd.http, max_in_flight=READY)
        async with consumer:
            watching = asyncio.create_task(self._watch(channel, consumer))
            async for message in consumer:
                self.came[channel][number_of(message.body)] += 1
                await message.finish()
            await watching

    async def _watch(self, channel: str, consumer: Consumer) -> None:
        """Stop it when nothing that was answered is missing, or nothing comes any more."""
        came, before, quiet = self.came[channel], -1, 0.0
        while not (self._published and self.answered <= came.keys()) and quiet < QUIET:
            await asyncio.sleep(LOOK)
            quiet = 0.0 if came.total() != before else quiet + LOOK
            before = came.total()
        consumer.stop()

    # --- what it came to

    def got(self, channel: str) -> int:
        """Of those that were answered OK."""
        return len(self.answered & self.came[channel].keys())

    def twice(self, channel: str) -> int:
        return self.came[channel].total() - len(self.came[channel])
