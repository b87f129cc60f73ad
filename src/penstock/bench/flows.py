"""What the processes of a load do: publish, or consume. Each is one of `crew`'s works."""

from __future__ import annotations

import random
from time import monotonic
from typing import TYPE_CHECKING, Final

from penstock.bench.connection import Connection, Loop
from penstock.bench.crew import Outcome
from penstock.protocol.requests import mpub, pub

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.bench.settings import Address, Settings

_HELD_BACK: Final = 25  # ms; an original holds the last messages back for 250, and takes no less than this
_NO_END: Final = 600.0  # seconds, for what ends by itself


def publisher(
    server: Address, settings: Settings, connections: int, most: int | None = None, *, ready: Callable[[], None]
) -> Outcome:
    """The next command when one is answered, on each connection; for a time, or until there are `most` messages."""
    command, batch = _command(settings), settings.batch
    clients = [Connection(server) for _ in range(connections)]
    sent = answers = 0
    wanted = -(-most // batch) if most is not None else 1 << 62

    def send(client: Connection) -> None:
        nonlocal sent
        if sent < wanted:
            sent += 1
            client.send(command)

    def answered(client: Connection) -> None:
        nonlocal answers
        answers += 1
        send(client)

    loop = Loop(clients, answered)
    ready()
    for client in clients:
        send(client)
    by_second: list[int] = []
    for _ in range(0 if most is not None else int(settings.seconds)):
        before = answers
        loop.run(1.0)
        by_second.append((answers - before) * batch)
    loop.run(_NO_END if most is not None else settings.seconds % 1, until=lambda: answers >= wanted)
    ended = monotonic()
    loop.close()
    return Outcome(messages=answers * batch, ended=ended, by_second=by_second)


def consumer(
    server: Address,
    settings: Settings,
    connections: int,
    channels: tuple[str, ...],
    quiet: float | None = None,
    *,
    ready: Callable[[], None],
) -> Outcome:
    """Takes what comes and finishes it, one write a read; for a time, or until nothing came for `quiet` seconds."""
    clients = [Connection(server, output_buffer_timeout=_HELD_BACK) for _ in range(connections)]
    for number, client in enumerate(clients):
        client.subscribe(settings.topic, channels[number % len(channels)])
    last = 0.0

    def received(client: Connection) -> None:
        nonlocal last
        if fins := client.frames.fins():
            client.send(fins)
            last = monotonic()

    loop = Loop(clients, received)
    ready()
    for client in clients:
        client.send(b"RDY %d\n" % settings.ready)
    last = monotonic()
    loop.run(
        _NO_END if quiet is not None else settings.seconds,
        until=lambda: quiet is not None and monotonic() - last > quiet,
    )
    messages = sum(client.frames.messages for client in clients)
    again = sum(client.frames.again for client in clients)
    loop.close()
    return Outcome(messages=messages, again=again, ended=last)


def _command(settings: Settings) -> bytes:
    chance = random.Random(1)
    bodies = [chance.randbytes(settings.size) for _ in range(settings.batch)]
    return mpub(settings.topic, bodies) if settings.batch > 1 else pub(settings.topic, bodies[0])
