"""Messages at a fixed rate, each timed from when it was to be sent. Knows one connection to publish and one to consume.

The next message does not wait for the last: where the server stalls, those that were to be sent meanwhile count as late
as they are, and not as if nobody had wanted to send them (coordinated omission).
"""

from __future__ import annotations

import select
from contextlib import suppress
from pathlib import Path
from time import monotonic, monotonic_ns
from typing import TYPE_CHECKING, Final

from penstock.bench.connection import Connection
from penstock.bench.crew import Outcome
from penstock.bench.wire import stamped
from penstock.errors import BenchFailed
from penstock.protocol.requests import dpub, pub

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.bench.settings import Address, Settings

_PATIENCE: Final = 10.0  # seconds for the last ones
_UNBUFFERED: Final = {"output_buffer_size": -1, "output_buffer_timeout": -1}


def probe(server: Address, settings: Settings, channel: str, *, ready: Callable[[], None]) -> Outcome:
    """Outcome's `latencies` are from intended publish to receipt (or from due); `late`, how late it was itself."""
    features = _UNBUFFERED if settings.unbuffered else {}
    consumer = Connection(server, with_stamps=True, feature_negotiation=True, **features)
    consumer.subscribe(settings.topic, channel)
    consumer.send(b"RDY %d\n" % settings.ready)
    publisher = Connection(server)
    outcome = Outcome()
    with suppress(OSError):  # a sleep ends when it is to, where the kernel lets us say so
        Path("/proc/self/timerslack_ns").write_text("1")
    ready()
    _at_a_rate(settings, publisher, consumer, outcome)
    outcome.ended = monotonic()
    consumer.close()
    publisher.close()
    return outcome


def _at_a_rate(settings: Settings, publisher: Connection, consumer: Connection, outcome: Outcome) -> None:
    count, sent = max(1, int(settings.rate * settings.seconds)), 0
    every = 1_000_000_000 / settings.rate
    start = monotonic_ns()
    deadline = start + int(count * every + settings.defer * 1e6 + _PATIENCE * 1e9)
    for each in (publisher, consumer):
        each.socket.setblocking(False)
    while outcome.messages < count:
        now = monotonic_ns()
        while sent < count and (due := start + int(sent * every)) <= now:
            outcome.late.add(now - due)
            publisher.send(_command(settings, due))
            sent += 1
        if now > deadline:
            raise BenchFailed(f"of {count} messages only {outcome.messages} came in time")
        next_ = start + int(sent * every) if sent < count else deadline
        _wait(publisher, consumer, (next_ - monotonic_ns()) / 1e9, outcome)


def _command(settings: Settings, due: int) -> bytes:
    """To be sent when it is `due`, and received then, or when it was deferred to."""
    if settings.defer:
        return dpub(settings.topic, settings.defer, stamped(due + settings.defer * 1_000_000, settings.size))
    return pub(settings.topic, stamped(due, settings.size))


def _wait(publisher: Connection, consumer: Connection, seconds: float, outcome: Outcome) -> None:
    """Receive what comes until then, or until something came."""
    wishes = [each for each in (publisher, consumer) if each.has_unsent]
    readable, writable, _ = select.select([publisher, consumer], wishes, [], max(0.0, seconds))
    for each in writable:
        each.send_rest()
    if publisher in readable:
        publisher.receive()
    if consumer in readable and consumer.receive():
        now = monotonic_ns()
        stamps = consumer.frames.stamps
        for stamp in stamps:
            outcome.latencies.add(now - stamp)
        outcome.messages += len(stamps)
        stamps.clear()
        if fins := consumer.frames.fins():
            consumer.send(fins)
