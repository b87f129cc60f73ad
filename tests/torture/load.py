"""Producers that number their messages, consumers that say what they got: threads that outlive their node."""

from __future__ import annotations

import http.client
import itertools
import threading
import time
from contextlib import contextmanager, suppress
from random import Random
from typing import TYPE_CHECKING, Final

from tests.torture import bodies
from tests.torture.history import OK, REFUSED, UNKNOWN, Connected, Finish, Publish, Receipt, Requeue
from tests.torture.wire import MESSAGE, Wire, many, publish

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.torture.history import History

TOPIC: Final = "torture"
ORDERED: Final = "ordered"  # the channel of one consumer with RDY 1
BATCH: Final = 40
GIVEN_UP: Final = (OSError, http.client.HTTPException)
_PROBE: Final = b"FIN 0000000000000000\n"
_UNKNOWN: Final = (b"E_PUB_FAILED", b"E_MPUB_FAILED", b"E_DPUB_FAILED")


class Ports:
    """Where the node listens now: its next life has others."""

    def __init__(self) -> None:
        self.tcp = self.http = 0


class Load:
    """All clients of an episode."""

    def __init__(self, history: History, ports: Ports, seed: int, rate: int) -> None:
        self.history = history
        self.ports = ports
        self.pause_between = BATCH / 2 / max(rate, 1)  # of one producer
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._connections = itertools.count(1)
        self._stopped, self._no_more = threading.Event(), threading.Event()
        self._going = Gate()
        self._random = Random(seed)
        producers = [Producer(self, self._seed(), web=web) for web in (False, False, True)]
        many = [Consumer(self, channel, self._seed()) for channel in self.channels if channel != ORDERED for _ in "12"]
        self._producers = [threading.Thread(target=self._run, args=(each, self._no_more)) for each in producers]
        consumers = [*many, Consumer(self, ORDERED, self._seed(), ready=1)]
        self._consumers = [threading.Thread(target=self._run, args=(each, self._stopped)) for each in consumers]
        for thread in (*self._producers, *self._consumers):
            thread.start()

    @property
    def channels(self) -> tuple[str, ...]:
        return self.history.channels

    def _seed(self) -> int:
        return self._random.getrandbits(32)

    def numbers(self, count: int) -> list[int]:
        """The next ones, one behind the other."""
        with self._lock:
            return [next(self._numbers) for _ in range(count)]

    def connection(self) -> int:
        return next(self._connections)

    def _run(self, worker: Producer | Consumer, end: threading.Event) -> None:
        """Until the end, on one connection after the other."""
        while not end.is_set():
            with suppress(*GIVEN_UP):
                worker.connect()
                while not end.is_set():
                    with self._going.through():
                        worker.act()
                    worker.rest(end)
            worker.disconnect()
            end.wait(0.05)

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Nobody does anything, and what was asked is answered."""
        with self._going.closed():
            yield

    def pause(self, seconds: float = 0.1) -> None:
        """The clients go on meanwhile."""
        self._stopped.wait(seconds)

    def publish_no_more(self) -> None:
        self._no_more.set()
        for thread in self._producers:
            thread.join(timeout=60)

    def stop(self) -> None:
        self.publish_no_more()
        self._stopped.set()
        for thread in self._consumers:
            thread.join(timeout=60)


class Gate:
    """Many go through, one at a time may close it, and then nobody is inside."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._closed = False

    @contextmanager
    def through(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._closed)
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    @contextmanager
    def closed(self) -> Iterator[None]:
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: not self._inside)
        try:
            yield
        finally:
            with self._changed:
                self._closed = False
                self._changed.notify_all()


class Producer:
    """PUB, MPUB, DPUB over TCP, or the same over HTTP; one command at a time, its answer noted down."""

    def __init__(self, load: Load, seed: int, *, web: bool) -> None:
        self._load, self._random, self._web = load, Random(seed), web
        self._wire: Wire | None = None
        self._http: http.client.HTTPConnection | None = None

    def connect(self) -> None:
        if self._web:
            self._http = http.client.HTTPConnection("127.0.0.1", self._load.ports.http, timeout=20)
            self._http.connect()
        else:
            self._wire = Wire(self._load.ports.tcp)

    def disconnect(self) -> None:
        if self._wire is not None:
            self._wire.__exit__()
        if self._http is not None:
            self._http.close()
        self._wire = self._http = None

    def rest(self, end: threading.Event) -> None:
        end.wait(self._random.random() * 2 * self._load.pause_between)

    def act(self) -> None:
        how = self._random.choice(("PUB", "MPUB", "MPUB", "DPUB"))
        numbers = self._load.numbers(self._random.randint(2, BATCH) if how == "MPUB" else 1)
        delay = self._random.randint(1, 2500) if how == "DPUB" else None
        sent, outcome, answered = time.monotonic(), UNKNOWN, 0.0
        try:
            outcome = self._ask([bodies.body(number) for number in numbers], delay)
            answered = time.monotonic()
        finally:  # also where no answer came
            noted = Publish(numbers[0], len(numbers), how, sent, answered, outcome, (delay or 0) / 1000)
            self._load.history.append(noted)

    def _ask(self, found: Sequence[bytes], delay: int | None) -> str:
        if self._wire is not None:
            self._wire.send(publish(TOPIC, found, delay))
            answer = self._wire.answer()
            return OK if answer == b"OK" else UNKNOWN if answer.startswith(_UNKNOWN) else REFUSED
        if self._http is None:
            raise ConnectionError("not connected")
        later = "" if delay is None else f"&defer={delay}"
        target, body = (f"/pub?topic={TOPIC}{later}", found[0])
        if len(found) > 1:
            target, body = f"/mpub?topic={TOPIC}&binary=true", many(found)
        self._http.request("POST", target, body)
        response = self._http.getresponse()
        response.read()
        return OK if response.status == 200 else UNKNOWN if response.status >= 500 else REFUSED


class Consumer:
    """Finishes most, requeues some, forgets a few; behind each read it asks something whose answer says: all taken."""

    def __init__(self, load: Load, channel: str, seed: int, *, ready: int = 0) -> None:
        self._load, self._channel, self._random = load, channel, Random(seed)
        self._ready = ready
        self._wire: Wire | None = None
        self._asked: list[dict[int, Finish | Requeue]] = []  # by id, for each probe that is not answered

    def connect(self) -> None:
        self._asked = []
        self._wire = wire = Wire(self._load.ports.tcp)
        self._number = self._load.connection()
        ready = self._ready or self._random.choice((1, 10, 200))
        self._load.history.append(Connected(self._channel, self._number, time.monotonic(), ready))
        wire.send(b"SUB %s %s\nRDY %d\n" % (TOPIC.encode(), self._channel.encode(), ready))

    def disconnect(self) -> None:
        """What was asked and not answered may have been taken."""
        for asked in self._asked:
            self._load.history.extend(asked.values())
        self._asked = []
        if self._wire is not None:
            self._wire.__exit__()
        self._wire = None

    def rest(self, end: threading.Event) -> None:
        """Reading waits enough."""

    def act(self) -> None:
        if self._wire is None:
            raise ConnectionError("not connected")
        commands, asked = [], {}
        for kind, data in self._wire.frames(0.1):
            if kind != MESSAGE:
                self._answered(data)
                continue
            attempts, message = int.from_bytes(data[8:10], "big"), int(data[10:26], 16)
            number, intact = bodies.read(data[26:])
            now = time.monotonic()
            receipt = Receipt(self._channel, number, message, attempts, self._number, now, intact)
            self._load.history.append(receipt)
            command, done = self._decide(receipt, data[10:26])
            commands.append(command)
            if done is not None:
                asked[message] = done
        if commands:
            self._asked.append(asked)
            self._wire.send(b"".join(commands) + _PROBE)
        if not self._ready and self._random.random() < 0.001:
            self._wire.abort()
            raise ConnectionError("as it wanted")

    def _decide(self, receipt: Receipt, name: bytes) -> tuple[bytes, Finish | Requeue | None]:
        draw = 1.0 if self._ready else self._random.random()
        if draw < 0.003:
            return b"", None  # it times out
        if draw < 0.05:
            delay = self._random.randint(0, 700)
            asked = Requeue(*receipt[:2], receipt.attempts, receipt.at, 0.0, delay / 1000)
            return b"REQ %s %d\n" % (name, delay), asked
        touch = b"TOUCH %s\n" % name if draw < 0.06 else b""
        return touch + b"FIN %s\n" % name, Finish(*receipt[:2], receipt.attempts, receipt.at, 0.0)

    def _answered(self, data: bytes) -> None:
        """An error names the message that it is about; that of a probe says that all before it was taken."""
        if not data.startswith(b"E_"):
            return
        if data.find(b"0000000000000000") < 0:
            if not data.startswith((b"E_FIN_FAILED", b"E_REQ_FAILED", b"E_TOUCH_FAILED")):
                raise ConnectionError(f"refused: {data!r}")
            if not data.startswith(b"E_TOUCH_FAILED"):
                message = int(data.split()[2], 16)
                for asked in self._asked:
                    asked.pop(message, None)
            return
        now = time.monotonic()
        self._load.history.extend(done._replace(known=now) for done in self._asked.pop(0).values())
