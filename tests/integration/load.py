"""Publishers and consumers that go on until their nsqd is killed, and what each knows for sure. Knows no test.

Numbers are published; whoever consumes remembers what came, and when it is known that its FIN arrived.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.integration.client import Client
from tests.integration.daemon import Nsqd

TOPIC = "t"
CHUNK = 50


class Published:
    """What was sent, and what of it was answered OK."""

    def __init__(self) -> None:
        self._next = itertools.count()
        self.sent: set[int] = set()
        self.ok: set[int] = set()

    def publish(self, client: Client) -> None:
        """A batch, a message, a deferred one, in turn."""
        while True:
            for take in (CHUNK, 1):
                self._ask(take, lambda *bodies: client.publish(TOPIC, *bodies))
            self._ask(1, lambda body: client.ask(f"DPUB {TOPIC} 100", body))

    def _ask(self, count: int, ask: Callable[..., bytes]) -> None:
        numbers = [next(self._next) for _ in range(count)]
        self.sent.update(numbers)
        if ask(*(b"%d" % number for number in numbers)) == b"OK":
            self.ok.update(numbers)


class Consumed:
    """What came on one channel over all lives of its nsqd."""

    def __init__(self, channel: str) -> None:
        self.channel = channel
        self.changed = threading.Condition()
        self.seen: set[int] = set()
        self.finished: dict[int, float] = {}  # when nsqd was known to have taken the FIN
        self.again: list[tuple[int, float]] = []  # came once more, after its FIN had been taken at that time

    def consume(self, client: Client) -> None:
        client.subscribe(TOPIC, self.channel, 2 * CHUNK)
        while True:
            numbers = []
            for message in client.message(), *client.taken():
                numbers.append(int(message.body))
                client.finish(message)
            with self.changed:
                self.again += [(n, self.finished[n]) for n in numbers if n in self.finished]
                self.seen.update(numbers)
                self.changed.notify_all()
            client.ask("FIN 0000000000000000")  # all before it was taken, when this is answered
            with self.changed:
                self.finished.update(dict.fromkeys(numbers, time.monotonic()))

    def go_on_for(self, seconds: float) -> None:
        """Until it has finished messages for so long."""
        until = time.monotonic() + seconds
        with self.changed:
            if not self.changed.wait_for(lambda: time.monotonic() >= until, seconds + 20):
                raise AssertionError(f"{self.channel}: nothing comes")

    def await_all(self, wanted: set[int], patience: float) -> None:
        with self.changed:
            if not self.changed.wait_for(lambda: wanted <= self.seen, patience):
                missing = sorted(wanted - self.seen)
                raise AssertionError(f"{self.channel}: {len(missing)} are missing: {missing[:10]}")


@contextmanager
def under_load(nsqd: Nsqd, *roles: Callable[[Client], None]) -> Iterator[None]:
    """Each role on a connection and a thread of its own; the block has to end nsqd, and that ends them."""
    threads = [threading.Thread(target=_run, args=(nsqd.client(), role)) for role in roles]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.join(timeout=20)


def _run(client: Client, role: Callable[[Client], None]) -> None:
    with client:
        try:
            role(client)
        except (EOFError, ConnectionError):
            return
