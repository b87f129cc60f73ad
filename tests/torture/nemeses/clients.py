"""Clients that do not behave."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from tests.torture import bodies
from tests.torture.history import REFUSED, UNKNOWN, Publish
from tests.torture.load import TOPIC
from tests.torture.nemeses.base import Nemesis
from tests.torture.wire import Wire, publish

if TYPE_CHECKING:
    from random import Random

    from tests.torture.arena import Arena


class Rude(Nemesis):
    """What a client does wrong; the node may hang up on it."""

    costs = "nothing; its own connection"

    def strike(self, arena: Arena, random: Random) -> None:
        with arena.trouble(self.name, deaf=False), suppress(OSError), Wire(arena.ports.tcp) as wire:
            self.behave(arena, wire, random)

    def behave(self, arena: Arena, wire: Wire, random: Random) -> None:
        raise NotImplementedError


def command(arena: Arena, random: Random) -> tuple[bytes, list[int]]:
    numbers = arena.load.numbers(random.choice((1, 20)))
    return publish(TOPIC, [bodies.body(number) for number in numbers]), numbers


def note(arena: Arena, numbers: list[int], outcome: str) -> None:
    arena.history.append(Publish(numbers[0], len(numbers), "rude", time.monotonic(), 0.0, outcome))


class Cut(Rude):
    """A publish that ends, with the connection, at any byte: what is not whole is not published."""

    name = "cut-command"

    def behave(self, arena: Arena, wire: Wire, random: Random) -> None:
        data, numbers = command(arena, random)
        end = random.randrange(len(data) + 1)
        note(arena, numbers, UNKNOWN if end == len(data) else REFUSED)
        wire.send(data[:end])
        if random.random() < 0.5:
            wire.abort()


class HalfClose(Rude):
    """It says that it sends no more, in the middle of a command or behind it."""

    name = "half-close"

    def behave(self, arena: Arena, wire: Wire, random: Random) -> None:
        data, numbers = command(arena, random)
        end = random.choice((len(data), random.randrange(len(data))))
        note(arena, numbers, UNKNOWN if end == len(data) else REFUSED)
        wire.send(data[:end])
        wire.half_close()
        with suppress(TimeoutError):
            wire.answer()


class Dribble(Rude):
    """A byte at a time."""

    name = "dribble"

    def behave(self, arena: Arena, wire: Wire, random: Random) -> None:
        (number,) = arena.load.numbers(1)
        note(arena, [number], UNKNOWN)
        data = publish(TOPIC, [bodies.body(number)])
        for at in range(300):
            wire.send(data[at : at + 1])
            arena.load.pause(0.001)
        wire.send(data[300:])


class Garbage(Rude):
    """Anything at all, or a command with a size that is none."""

    name = "garbage"

    def behave(self, arena: Arena, wire: Wire, random: Random) -> None:
        wire.send(
            random.choice(
                (
                    random.randbytes(random.randrange(1, 5000)),
                    b"PUB torture\n\xff\xff\xff\xff" + random.randbytes(50),
                    b"MPUB torture\n\x00\x00\x00\x20\x7f\xff\xff\xff" + random.randbytes(40),
                    b"FIN " + random.randbytes(16) + b"\n" * 2000,
                    b"SUB torture archive\nRDY -1\n",
                )
            )
        )
        with suppress(TimeoutError):
            wire.answer()


class Deaf(Rude):
    """A consumer that takes as much as there is, reads nothing, and hangs up: all of it goes to others."""

    name = "deaf-consumer"

    def behave(self, arena: Arena, wire: Wire, random: Random) -> None:
        channel = random.choice(("archive", "billing"))
        wire.send(f"SUB {TOPIC} {channel}\nRDY 2500\n".encode())
        arena.load.pause(random.random() * 3)
        if random.random() < 0.5:
            wire.abort()
