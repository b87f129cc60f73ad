"""Python's clients doing the same work as programs: penstock, pynsq, ansq. Knows no row; nsqd is somebody else's.

    rivals.py CLIENT publish|mpub|consume PORT TOPIC COUNT         prints the seconds that it took, and the CPU's

publish: 100 at a time, each waiting for its own answer. mpub: 100 in a command, one behind the other. consume: RDY 500,
each message finished by itself. All on asyncio's own loop, over one connection.
"""

from __future__ import annotations

import asyncio
import sys
from importlib import import_module
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any, Final

from bench.load import BODIES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

AT_ONCE: Final = 100
READY: Final = 500
_BODY: Final = BODIES[0]
_MANY: Final = BODIES[:AT_ONCE]


# --- penstock


async def publish_penstock(port: int, topic: str, count: int) -> float:
    from penstock.client import Producer

    async with Producer(f"127.0.0.1:{port}") as producer:
        await producer.publish(topic, _BODY)
        return await _tasks(lambda: producer.publish(topic, _BODY), count)


async def mpub_penstock(port: int, topic: str, count: int) -> float:
    from penstock.client import Producer

    async with Producer(f"127.0.0.1:{port}") as producer:
        await producer.publish(topic, _BODY)
        return await _in_turn(lambda: producer.publish_many(topic, _MANY), count)


async def consume_penstock(port: int, topic: str, count: int) -> float:
    from penstock.client import Consumer

    async with Consumer(topic, "bench", nsqd=f"127.0.0.1:{port}", max_in_flight=READY) as consumer:
        await (await anext(consumer)).finish()
        began, left = perf_counter(), count - 1
        async for message in consumer:
            await message.finish()
            left -= 1
            if not left:
                break
        return perf_counter() - began


# --- ansq


async def publish_ansq(port: int, topic: str, count: int) -> float:
    from ansq import open_connection

    connection = await open_connection("127.0.0.1", port)
    seconds = await _tasks(lambda: connection.pub(topic, _BODY), count)
    await connection.close()
    return seconds


async def mpub_ansq(port: int, topic: str, count: int) -> float:
    from ansq import open_connection

    connection = await open_connection("127.0.0.1", port)
    seconds = await _in_turn(lambda: connection.mpub(topic, *_MANY), count)
    await connection.close()
    return seconds


async def consume_ansq(port: int, topic: str, count: int) -> float:
    from ansq import open_connection

    connection = await open_connection("127.0.0.1", port)
    await connection.subscribe(topic, "bench", READY)
    began, left = 0.0, count
    async for message in connection.messages():
        await message.fin()
        began = began or perf_counter()
        left -= 1
        if not left:
            break
    seconds = perf_counter() - began
    await connection.close()
    return seconds


# --- pynsq, which has callbacks


async def publish_pynsq(port: int, topic: str, count: int) -> float:
    return await _pynsq(port, AT_ONCE, count, lambda writer, done: writer.pub(topic, _BODY, callback=done))


async def mpub_pynsq(port: int, topic: str, count: int) -> float:
    return await _pynsq(port, 1, count // AT_ONCE, lambda writer, done: writer.mpub(topic, _MANY, callback=done))


async def _pynsq(port: int, at_once: int, count: int, send: Callable[[Any, Callable[..., None]], object]) -> float:
    from nsq import Writer  # type: ignore[import-untyped]

    writer = Writer([f"127.0.0.1:{port}"])
    ready, over = asyncio.Event(), asyncio.Event()
    add = writer._on_connection_ready

    def connected(conn: object) -> None:  # the name is pynsq's
        add(conn)
        ready.set()

    writer._on_connection_ready = connected
    await ready.wait()
    begun = answered = 0

    def done(_conn: object, data: object) -> None:
        nonlocal begun, answered
        if data != b"OK":
            raise RuntimeError(data)
        answered += 1
        if begun < count:
            begun += 1
            send(writer, done)
        elif answered == count:
            over.set()

    began = perf_counter()
    for _ in range(min(at_once, count)):
        begun += 1
        send(writer, done)
    await over.wait()
    return perf_counter() - began


async def consume_pynsq(port: int, topic: str, count: int) -> float:
    from nsq import Reader

    began, left = 0.0, count
    over = asyncio.Event()

    def take(_message: object) -> bool:
        nonlocal began, left
        began = began or perf_counter()
        left -= 1
        if not left:
            over.set()
        return True

    Reader(topic, "bench", take, nsqd_tcp_addresses=[f"127.0.0.1:{port}"], max_in_flight=READY, max_tries=0)
    await over.wait()
    return perf_counter() - began


# --- what they share


async def _tasks(publish: Callable[[], Awaitable[object]], count: int) -> float:
    left = iter(range(count))

    async def work() -> None:
        for _ in left:
            await publish()

    began = perf_counter()
    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return perf_counter() - began


async def _in_turn(publish: Callable[[], Awaitable[object]], count: int) -> float:
    began = perf_counter()
    for _ in range(count // AT_ONCE):
        await publish()
    return perf_counter() - began


MODULES: Final = {"penstock": "penstock.client", "pynsq": "nsq", "ansq": "ansq"}

if __name__ == "__main__":
    client, work, port, topic, count = sys.argv[1:]
    import_module(MODULES[client])
    before = process_time()
    print(asyncio.run(globals()[f"{work}_{client}"](int(port), topic, int(count))), process_time() - before)
    sys.stdout.flush()
