"""What is to be published, and what was and waits for its answer. Knows no socket; times are arguments, in seconds.

    put --> a batch of its topic, which ends with the turn --> waiting --sent--> owed --OK--> its receipts are told
                                                                  ^                |
                                                                  '---not done-----'

One message goes as PUB, more of them as one MPUB. nsqd does what a connection asks in order, and ends it with an error:
so what is behind an error was not done, and goes out again, unless the error says that nobody knows (E_PUB_FAILED).
Where a batch is refused that was joined here, its messages go again one by one: the bad one fails alone.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

from penstock.client.frames import ERROR
from penstock.errors import (
    AnswerLost,
    ClientError,
    DpubFailed,
    MpubFailed,
    NotSent,
    PenstockError,
    PubFailed,
    answered_error,
)
from penstock.protocol import requests

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_MOST: Final = 1000  # messages that are joined to one MPUB,
_MOST_BYTES: Final = 512 << 10  # and their bytes: NSQ's limit of a body is ten times that
_LONG: Final = 0.05  # seconds; who waits so long for a connection may have gone meanwhile
_UNKNOWN: Final = (PubFailed, MpubFailed, DpubFailed)


class Receipt(Protocol):
    """As a future: who waits for the answer may have gone."""

    def done(self) -> bool: ...
    def set_result(self, result: None, /) -> None: ...
    def set_exception(self, error: BaseException, /) -> None: ...


class Batch:
    """Messages of one topic that are published together, with a receipt for each, or one for all."""

    __slots__ = ("bodies", "delay", "receipts", "since", "size", "topic")

    def __init__(self, topic: str, now: float, delay: int | None = None) -> None:
        self.topic = topic
        self.delay = delay  # ms
        self.bodies: list[bytes] = []
        self.receipts: list[Receipt] = []
        self.size = 0  # bytes
        self.since = now  # when it began to wait: for a connection, then for its answer

    def command(self) -> bytes:
        bodies = self.bodies
        if self.delay is not None:
            return requests.dpub(self.topic, self.delay, bodies[0])
        return requests.pub(self.topic, bodies[0]) if len(bodies) == 1 else requests.mpub(self.topic, bodies)

    def done(self) -> None:
        for receipt in self.receipts:
            if not receipt.done():
                receipt.set_result(None)

    def failed(self, error: PenstockError) -> None:
        for receipt in self.receipts:
            if not receipt.done():
                receipt.set_exception(error)

    @property
    def is_joined(self) -> bool:
        return len(self.receipts) > 1

    def without_those_gone(self) -> int:
        """Who waited may have given up before it was sent; of how many messages it is less."""
        before = len(self.bodies)
        if all(receipt.done() for receipt in self.receipts):
            self.bodies.clear()
            self.receipts.clear()
        elif self.is_joined:
            left = [pair for pair in zip(self.bodies, self.receipts, strict=True) if not pair[1].done()]
            self.bodies, self.receipts = [body for body, _ in left], [receipt for _, receipt in left]
        return before - len(self.bodies)

    def apart(self) -> Iterable[Batch]:
        for body, receipt in zip(self.bodies, self.receipts, strict=True):
            batch = Batch(self.topic, self.since)
            batch.bodies.append(body)
            batch.receipts.append(receipt)
            batch.size = len(body)
            yield batch


class Outbox:
    """All that was not answered yet: `count` messages of `size` bytes, of which some wait to be sent."""

    def __init__(self) -> None:
        self.waiting: deque[Batch] = deque()
        self.count = 0
        self.size = 0
        self._open: dict[str, Batch] = {}  # by topic: the batch that more messages of this turn join

    def put(self, topic: str, body: bytes, receipt: Receipt, now: float) -> None:
        batch = self._open.get(topic)
        if batch is None or batch.size + len(body) > _MOST_BYTES or len(batch.bodies) == _MOST:
            batch = self._open[topic] = Batch(topic, now)
            self.waiting.append(batch)
        batch.bodies.append(body)
        batch.receipts.append(receipt)
        batch.size += len(body)
        self.count += 1
        self.size += len(body)

    def put_together(
        self, topic: str, bodies: Sequence[bytes], receipt: Receipt, now: float, delay: int | None = None
    ) -> None:
        """In one command, all or nothing; or deferred, one alone, in ms."""
        batch = Batch(topic, now, delay)
        batch.bodies.extend(bodies)
        batch.receipts.append(receipt)
        batch.size = sum(map(len, bodies))
        self._open.pop(topic, None)  # what is put behind this goes out behind it
        self.waiting.append(batch)
        self.count += len(bodies)
        self.size += batch.size

    def end_turn(self) -> None:
        """What is put from now on goes into other batches."""
        self._open.clear()

    def again(self, batches: Iterable[Batch]) -> None:
        """What was not done goes before all that waits."""
        self.waiting.extendleft(reversed(list(batches)))

    def next(self, now: float) -> Batch | None:
        """What goes out next."""
        while self.waiting:
            batch = self.waiting.popleft()
            if now - batch.since > _LONG:
                self.count -= batch.without_those_gone()
            if batch.bodies:
                return batch
            self.size -= batch.size
        return None

    def answered(self, batch: Batch) -> None:
        """Nothing more is to be done for it."""
        self.count -= len(batch.bodies)
        self.size -= batch.size

    def expire(self, before: float, why: str) -> None:
        """What waits since then is not sent any more."""
        waiting = self.waiting
        while waiting and waiting[0].since <= before:
            batch = waiting.popleft()
            self.answered(batch)
            batch.failed(NotSent(why))


class Lane:
    """What was sent to one nsqd and is owed an answer, in order."""

    def __init__(self, outbox: Outbox) -> None:
        self.owed: deque[Batch] = deque()
        self._outbox = outbox

    def sent(self, batch: Batch, now: float) -> None:
        batch.since = now
        self.owed.append(batch)

    def answer(self, kind: int, data: bytes) -> None:
        if kind == ERROR:
            self._refused(answered_error(data))
        elif self.owed:
            batch = self.owed.popleft()
            self._outbox.answered(batch)
            batch.done()

    def lost(self, why: str) -> None:
        """The connection is over: whether what is owed was done, nobody knows."""
        while self.owed:
            batch = self.owed.popleft()
            self._outbox.answered(batch)
            batch.failed(AnswerLost(f"the message may be published, or not: {why}"))

    def _refused(self, error: ClientError) -> None:
        if not self.owed:
            return
        batch = self.owed.popleft()
        known = not isinstance(error, _UNKNOWN)
        again: list[Batch] = []
        if known and batch.is_joined:
            again.extend(batch.apart())
        else:
            self._outbox.answered(batch)
            batch.failed(error)
        if known:
            again.extend(self.owed)
            self.owed.clear()
            self._outbox.again(again)
