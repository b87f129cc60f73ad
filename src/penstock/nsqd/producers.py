"""A node's producers: they number what they publish to a topic, so that a batch that comes again is known.

    sequence     digest     |
    above last   any        | appended, as a batch of its own; it is the last one from then on
    the last     the same   | OK, nothing is appended
    the last     another    | refused: it is another batch
    below last   any        | OK, nothing is appended: it was published, and what it was is not known any more

The batch itself has the key, and is found by a start. When it is on the device the journal is told, a block for many
batches; when that is on the device too, the log is. A producer that publishes nothing for so long is forgotten.

A mark is a sequence and a digest of a producer of no topic, kept for whoever asks: nothing is published by it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from penstock.errors import CorruptLog, LogError, OtherBatch
from penstock.log import entries as e
from penstock.log.keyed import Key, unpack
from penstock.log.topic_log import TopicLog
from penstock.nsqd.home import Ticket

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.daemon.logging import Logger
    from penstock.log.keyed import Keyed
    from penstock.nsqd.home import Clock, Home
    from penstock.nsqd.scribe import Scribe
    from penstock.protocol.commands import Publish


class OnceTicket(Ticket, Protocol):
    """Somebody who publishes under a key, and waits for an answer."""

    def repeats(self, last: int) -> None:
        """It was published before, and `last` is the producer's last sequence; `done` follows."""


@dataclass(slots=True)
class Producer:
    """What it published last to one topic."""

    sequence: int
    digest: bytes
    when: int  # wall
    said: e.ProducerSeen | None = None  # what the journal was told last


class _Settling:
    """What of one log's keys the journal has to be told, and was told."""

    __slots__ = ("said", "unsaid")

    def __init__(self) -> None:
        self.unsaid: list[Keyed] = []
        self.said: deque[tuple[int, Keyed]] = deque()  # (ordinal in the journal, what it says)


class Producers:
    """All producers of one node."""

    def __init__(self, timeout: int, scribe: Scribe, clock: Clock, logger: Logger, defer: Callable[..., None]) -> None:
        self._timeout = timeout
        self._scribe = scribe
        self._clock = clock
        self._logger = logger
        self._defer = defer
        self._of: dict[Home, OrderedDict[bytes, Producer]] = {}  # longest silent first
        self._settling: dict[Home, _Settling] = {}
        self.marks: OrderedDict[bytes, e.ProducerSeen] = OrderedDict()

    # --- publishing

    def publish(self, home: Home, key: Key, found: Publish | Sequence[bytes], delay: int, ticket: OnceTicket) -> None:
        """In its turn: behind what was published to the topic before, and in the order in which they come."""
        home.alone.append((lambda: self._publish(home, key, found, delay, ticket), ticket))

    def _publish(
        self, home: Home, key: Key, found: Publish | Sequence[bytes], delay: int, ticket: OnceTicket
    ) -> LogError | None:
        known = self._known(home, key.producer)
        if known is None or key.sequence > known.sequence:
            return self._append(home, key, found, delay, ticket)
        if key.sequence == known.sequence and key.digest != known.digest:
            producer = key.producer.decode("utf-8", "replace")
            ticket.done(OtherBatch(f"{home.topic.name}: {producer} published {key.sequence} with another digest"))
            return None
        ticket.repeats(known.sequence)
        home.answer_repeat(ticket)
        return None

    def _append(
        self, home: Home, key: Key, found: Publish | Sequence[bytes], delay: int, ticket: OnceTicket
    ) -> LogError | None:
        if not delay:
            return home.write_alone(found, ticket, key.pack(), lambda: self._seen(home, key, self._clock.wall))
        try:
            self._defer(home, bodies_of(found), delay, ticket, key.pack())
        except LogError as error:
            ticket.done(error)
            return error
        self._seen(home, key, self._clock.wall)
        return None

    def _seen(self, home: Home, key: Key, when: int) -> None:
        producers = self._of.setdefault(home, OrderedDict())
        known = producers.pop(key.producer, None)
        producers[key.producer] = Producer(key.sequence, key.digest, when, known.said if known else None)

    def _known(self, home: Home, producer: bytes) -> Producer | None:
        producers = self._of.get(home)
        return producers.get(producer) if producers is not None else None

    # --- asking

    def find(self, producer: bytes) -> dict[str, Producer]:
        """By topic."""
        return {home.topic.name: found[producer] for home, found in self._of.items() if producer in found}

    def mark(self, key: Key) -> None:
        """It stands in the journal when this returns."""
        entry = e.ProducerSeen(e.NODE, key.producer, key.sequence, key.digest, self._clock.wall)
        self._scribe.order(entry)
        self.marks[entry.key] = entry
        self.marks.move_to_end(entry.key)

    # --- what is remembered

    def settle(self, home: Home) -> bool:
        """Tell the journal what is on the device, and the log what of it the journal has there; True when idle."""
        log = home.log
        if not isinstance(log, TopicLog) or not (log.keyed or home in self._settling):
            return True
        settling = self._settling.setdefault(home, _Settling())
        while settling.said and settling.said[0][0] <= self._scribe.journal.flushed:
            log.key_known(settling.said.popleft()[1])
        settling.unsaid += log.flushed_keys()
        self._say(home, settling)
        if settling.said or settling.unsaid:
            return False
        del self._settling[home]
        return False  # what waited for that has its turn once more

    def _say(self, home: Home, settling: _Settling) -> None:
        news = self._news(home, settling.unsaid)
        try:
            self._scribe.order(*(entry for _, entry in news.values()))
        except LogError as error:  # the next round tries it again
            self._logger.error("journal: %s", error)
            return
        for known, entry in news.values():
            known.said = entry
        ordinal = self._scribe.journal.end
        settling.said.extend((ordinal, keyed) for keyed in settling.unsaid)
        settling.unsaid = []

    def _news(self, home: Home, unsaid: Sequence[Keyed]) -> dict[bytes, tuple[Producer, e.ProducerSeen]]:
        """What of it the journal does not know: a start finds older batches too."""
        news: dict[bytes, tuple[Producer, e.ProducerSeen]] = {}
        for keyed in unsaid:
            key = self._key(home, keyed)
            known = self._known(home, key.producer) if key else None
            if key is None or known is None:
                continue
            _, before = news.get(key.producer, (known, known.said))
            if before is None or before.sequence < key.sequence:
                entry = e.ProducerSeen(home.number, key.producer, key.sequence, key.digest, keyed.time)
                news[key.producer] = known, entry
        return news

    def _key(self, home: Home, keyed: Keyed) -> Key | None:
        try:
            return unpack(keyed.key)
        except CorruptLog as error:
            self._logger.error("TOPIC(%s): %s", home.topic.name, error)
            return None

    def all(self) -> list[tuple[Home | None, bytes]]:
        """Each producer of a topic, and of no topic each that has a mark."""
        found: list[tuple[Home | None, bytes]] = [(None, producer) for producer in self.marks]
        for home, producers in self._of.items():
            found += [(home, producer) for producer in producers]
        return found

    def said(self, home: Home | None, producer: bytes) -> e.ProducerSeen | None:
        """What the journal was told of it last."""
        if home is None:
            return self.marks.get(producer)
        known = self._known(home, producer)
        return known.said if known else None

    def restore(self, home: Home, said: Sequence[e.ProducerSeen]) -> None:
        """As the journal says, and the batches that a start found."""
        for entry in sorted(said, key=lambda entry: entry.when):
            self._of.setdefault(home, OrderedDict())[entry.key] = Producer(*entry[2:], said=entry)
        if isinstance(home.log, TopicLog):
            for keyed in home.log.keyed:
                self._restore_batch(home, keyed)

    def _restore_batch(self, home: Home, keyed: Keyed) -> None:
        key = self._key(home, keyed)
        if key is None:
            return
        known = self._known(home, key.producer)
        if known is None or known.sequence < key.sequence:
            self._seen(home, key, keyed.time)

    # --- what is forgotten

    def forget(self, home: Home) -> None:
        """The topic is gone."""
        self._of.pop(home, None)
        self._settling.pop(home, None)

    def drop_old(self) -> None:
        """Who has published nothing for too long."""
        if not self._timeout:
            return
        before = self._clock.wall - self._timeout
        try:
            for home, producers in list(self._of.items()):
                self._drop_before(before, home, producers)
            while self.marks and (first := next(iter(self.marks.values()))).when < before:
                self._scribe.order(e.ProducerDropped(e.NODE, first.key))
                del self.marks[first.key]
        except LogError as error:  # the next round tries it again
            self._logger.error("journal: %s", error)

    def _drop_before(self, before: int, home: Home, producers: OrderedDict[bytes, Producer]) -> None:
        while producers and (first := next(iter(producers.items())))[1].when < before:
            if home.number >= 0:
                self._scribe.order(e.ProducerDropped(home.number, first[0]))
            del producers[first[0]]
        if not producers:
            del self._of[home]


def bodies_of(found: Publish | Sequence[bytes]) -> Sequence[bytes]:
    """One by one."""
    if isinstance(found, Sequence):
        return found
    at, bodies = found.start, []
    for _ in range(found.count):
        at += found.skip + 4
        size = int.from_bytes(found.data[at - 4 : at], "big")
        bodies.append(bytes(found.data[at : at + size]))
        at += size
    return bodies
