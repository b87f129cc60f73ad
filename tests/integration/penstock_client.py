"""Our client as programs, for tests that kill what is around them. Knows no test.

    penstock_client.py produce WHERE TOPIC FIRST NEXT      until each number was answered OK, however often it takes
    penstock_client.py consume WHERE TOPIC CHANNEL MAX     writes each number, then finishes it; until it is interrupted

WHERE is `nsqd=A,B` or `lookupd=A,B`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

from penstock.client import Consumer, Message, Producer
from penstock.errors import AnswerLost, NotSent

AT_ONCE = 50


async def produce(where: dict[str, Any], topic: str, first: int, next_: int) -> None:
    numbers = iter(range(first, next_))
    async with Producer(**where, timeout=2.0, poll_interval=0.1) as producer:

        async def work() -> None:
            for number in numbers:
                while True:
                    try:
                        await producer.publish(topic, b"%d" % number)
                        break
                    except (AnswerLost, NotSent):
                        continue
                await asyncio.sleep(0.001)  # so that what happens meanwhile happens meanwhile

        await asyncio.gather(*(work() for _ in range(AT_ONCE)))


async def consume(where: dict[str, Any], topic: str, channel: str, max_in_flight: int) -> None:
    async def take(message: Message) -> None:
        os.write(1, message.body + b"\n")

    async with Consumer(topic, channel, **where, max_in_flight=max_in_flight, poll_interval=0.2) as consumer:
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, consumer.stop)
        await consumer.run(take, concurrency=5)


if __name__ == "__main__":
    what, where, topic, *rest = sys.argv[1:]
    kind, _, addresses = where.partition("=")
    given = {kind: addresses.split(",")}
    if what == "produce":
        asyncio.run(produce(given, topic, int(rest[0]), int(rest[1])))
    else:
        asyncio.run(consume(given, topic, rest[0], int(rest[1])))
