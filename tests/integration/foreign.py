"""Other people's clients as programs: pynsq and ansq, publishing or consuming. Knows no test.

The variable WISHES holds what else they ask of their connections, as JSON with pynsq's names.

    foreign.py produce pynsq PORT TOPIC FIRST NEXT
    foreign.py consume ansq  PORT TOPIC CHANNEL

Messages are numbers. A producer ends when all were answered OK. A consumer writes `number attempts` for each one right
before it finishes it; at first sight it requeues some and lets others time out.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

WISHES: dict[str, Any] = json.loads(os.environ.get("WISHES", "{}"))
TIMEOUT = 1000  # ms, the shortest that nsqd takes
READY = 100
CHUNK = 500


def is_requeued(number: int) -> bool:
    return number % 50 == 7


def is_left(number: int) -> bool:
    """It is not answered, so that it times out."""
    return number % 101 == 5


def is_deferred(number: int) -> bool:
    return number % 40 == 3


def _note(number: int, attempts: int) -> None:
    os.write(1, b"%d %d\n" % (number, attempts))


# --- pynsq


async def produce_pynsq(port: int, topic: str, first: int, next_: int) -> None:
    from nsq import Writer  # type: ignore[import-untyped]

    writer = Writer([f"localhost:{port}"], **WISHES)
    ready = asyncio.Event()
    add = writer._on_connection_ready

    def connected(conn: object) -> None:  # the name is pynsq's
        add(conn)
        ready.set()

    writer._on_connection_ready = connected
    await ready.wait()
    loop = asyncio.get_running_loop()

    def send(command: str, *args: object) -> asyncio.Future[object]:
        answer = loop.create_future()
        getattr(writer, command)(topic, *args, callback=lambda _conn, data: answer.set_result(data))
        return answer

    for start in range(first, next_, CHUNK):
        numbers = range(start, min(start + CHUNK, next_))
        together = [number for number in numbers if number % 2 and not is_deferred(number)]
        answers = [send("mpub", [b"%d" % number for number in together])]
        for number in numbers:
            if is_deferred(number):
                answers.append(send("dpub", 200, b"%d" % number))
            elif not number % 2:
                answers.append(send("pub", b"%d" % number))
        _all_ok(await asyncio.gather(*answers))


async def consume_pynsq(port: int, topic: str, channel: str) -> None:
    from nsq import Reader

    def take(message: Any) -> None:
        message.enable_async()
        number, attempts = int(message.body), message.attempts
        if attempts == 1 and is_requeued(number):
            message.requeue(backoff=False, time_ms=number % 3 * 100)
        elif attempts > 1 or not is_left(number):
            _note(number, attempts)
            message.finish()

    Reader(
        topic,
        channel,
        take,
        nsqd_tcp_addresses=[f"localhost:{port}"],
        max_in_flight=READY,
        max_tries=0,
        msg_timeout=TIMEOUT / 1000,
        **WISHES,
    )
    await asyncio.Event().wait()


# --- ansq


async def produce_ansq(port: int, topic: str, first: int, next_: int) -> None:
    from ansq import create_writer

    writer = await create_writer([f"127.0.0.1:{port}"])
    for each in writer.connections:
        await _authorize(each)
    for start in range(first, next_, CHUNK):
        numbers = range(start, min(start + CHUNK, next_))
        together = [number for number in numbers if number % 2 and not is_deferred(number)]
        answers = [writer.mpub(topic, *(str(number) for number in together))]
        for number in numbers:
            if is_deferred(number):
                answers.append(writer.dpub(topic, str(number), 200))
            elif not number % 2:
                answers.append(writer.pub(topic, str(number)))
        _all_ok([answer.body for answer in await asyncio.gather(*answers)])  # type: ignore[union-attr]
    await writer.close()


async def consume_ansq(port: int, topic: str, channel: str) -> None:
    from ansq import ConnectionFeatures, ConnectionOptions, open_connection

    options = ConnectionOptions(features=ConnectionFeatures(msg_timeout=TIMEOUT))
    connection = await open_connection("127.0.0.1", port, connection_options=options)
    await _authorize(connection)
    await connection.subscribe(topic, channel, READY)
    async for message in connection.messages():
        number, attempts = int(message.body), message.attempts
        if attempts == 1 and is_requeued(number):
            await message.req(number % 3 * 100)
        elif attempts > 1 or not is_left(number):
            _note(number, attempts)
            await message.fin()


async def _authorize(connection: Any) -> None:
    if "auth_secret" in WISHES:
        await connection.auth(WISHES["auth_secret"])
        connection._is_authorized = True  # which ansq waits for, and never sets


def _all_ok(answers: list[Any]) -> None:
    wrong = [answer for answer in answers if answer != b"OK"]
    if wrong:
        raise RuntimeError(f"not OK: {wrong[:3]!r}")


ROLES = {
    ("produce", "pynsq"): produce_pynsq,
    ("produce", "ansq"): produce_ansq,
    ("consume", "pynsq"): consume_pynsq,
    ("consume", "ansq"): consume_ansq,
}

if __name__ == "__main__":
    what, client, port, topic, *rest = sys.argv[1:]
    asyncio.run(ROLES[what, client](int(port), topic, *(int(word) if word.isdigit() else word for word in rest)))  # type: ignore[operator]
