"""A node that does something, at random, whenever it is let: what a backup has to live with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from penstock.log import entries as e
from penstock.log.disk import Disk
from penstock.log.files import Files
from penstock.log.journal import Journal
from penstock.log.timetable import Timetable
from penstock.log.timetable.bucket import Limits
from penstock.log.topic_log import TopicLog
from penstock.log.work import Work
from penstock.protocol.batch import records
from tests.unit.log.tools.node import PATH, SECOND, START, flush, start

SMALL = Limits(load=600, entries=12, held=2000)  # buckets are split early


@dataclass
class Topic:
    """What the node knows of one of its topics."""

    log: TopicLog
    bodies: dict[int, bytes] = field(default_factory=dict)  # by offset, all that ever were
    unfinished: set[int] = field(default_factory=set)  # that a channel still wants
    deferred: list[bytes] = field(default_factory=list)
    below: int = 0  # what is deleted, or is to be
    work: Work | None = None  # run by a thread, its end not yet told


class BusyNode:
    """A node whose every step is drawn."""

    def __init__(self, files: Files, rng: Random) -> None:
        self.rng = rng
        self.node = start(files, segment=600)
        self.disk: Disk = self.node.disk
        self.topics: list[Topic] = []
        self.journal = Journal(self.disk, f"{PATH}/journal", floor=300)
        self.now = START
        self.count = 0
        for _ in range(2):
            self.create()

    def create(self) -> None:
        log = self.node.create(f"topic{len(self.topics)}")
        log.timetable = Timetable(log.disk, log.directory, log.birth.seed, SMALL)
        self.topics.append(Topic(log))

    def step(self) -> None:
        """One thing of all that a node does."""
        self.now += self.rng.randrange(SECOND)
        weights = {
            self.append: 10,
            self.defer: 6,
            self.move: 8,
            self.flush: 10,
            self.finish_flush: 10,
            self.delete: 3,
            self.tell: 6,
            self.compact: 3,
            self.create: 1,
            self.drop: 1,
        }
        (do,) = self.rng.choices([*weights], [*weights.values()])
        do()

    def _any(self) -> Topic | None:
        return self.rng.choice(self.topics) if self.topics else None

    def _new_bodies(self) -> list[bytes]:
        self.count += 4
        return [
            b"%d" % number + b"." * self.rng.randrange(60)
            for number in range(self.count - self.rng.randrange(1, 4), self.count)
        ]

    def append(self) -> None:
        if topic := self._any():
            bodies = self._new_bodies()
            key = {"flags": 1, "key": b"producer"} if self.rng.random() < 0.2 else {}
            first = topic.log.append(bodies, self.now, **key)  # type: ignore[arg-type]
            self._note(topic, first, bodies)

    def _note(self, topic: Topic, first: int, bodies: Sequence[bytes]) -> None:
        for offset, body in enumerate(bodies, first):
            topic.bodies[offset] = body
            if self.rng.random() < 0.6:
                topic.unfinished.add(offset)

    def defer(self) -> None:
        if topic := self._any():
            bodies = self._new_bodies()
            topic.log.defer(bodies, self.now + self.rng.randrange(10 * SECOND), self.now)
            topic.deferred += bodies

    def move(self) -> None:
        """What is due goes to the log; a channel wants it."""
        if topic := self._any():
            log = topic.log
            while work := log.timetable.prepare(self.now):
                work()
            first = log.end
            if log.move_due(self.now):
                block = log.read(first)
                assert block is not None
                self._note(topic, first, [record.body for record in records(block.data) if record.offset >= first])
                topic.unfinished.update(range(first, log.end))

    def flush(self) -> None:
        """A thread does its part; until its end is told, the node has not heard of it."""
        topic = self._any()
        if topic and topic.work is None and (work := topic.log.work()):
            work.run()
            topic.work = work

    def finish_flush(self) -> None:
        for topic in self.topics:
            work, topic.work = topic.work, None
            if work:
                work.finish()

    def delete(self) -> None:
        """Retention: finished segments go, stragglers are held."""
        if topic := self._any():
            log = topic.log
            self.finish_flush()
            flush(log)
            below = topic.below = max(topic.below, self.rng.choice([0, *(each.first for each in log.chain.segments)]))
            stragglers = {offset for offset in topic.unfinished if offset < below}
            for offset in [*stragglers]:
                if self.rng.random() < 0.7:
                    stragglers.discard(offset)
                    topic.unfinished.discard(offset)
            log.hold({offset for offset in stragglers if offset >= log.earliest}, self.now)
            log.held.keep(stragglers)
            log.delete_below(below)

    def tell(self) -> None:
        """The journal: how many messages each topic has, as a reader's offset."""
        self.journal.append(self._told(), self.now)

    def _told(self) -> list[e.Entry]:
        return [
            e.ReaderMoved(number, topic.log.birth.folder, topic.log.end, self.now, False)
            for number, topic in enumerate(self.topics)
        ]

    def compact(self) -> None:
        if self.journal.wants_compaction:
            self.journal.compact(self._slice)
        while self.journal.write_slice(self.now):
            pass
        if work := self.journal.flush_work():
            work()

    def _slice(self, _mark: Any) -> tuple[Sequence[e.Entry], Any]:
        return self._told(), None

    def drop(self) -> None:
        """A topic is deleted."""
        if len(self.topics) > 1:
            self.finish_flush()
            topic = self.topics.pop(self.rng.randrange(len(self.topics)))
            self.node.delete(topic.log)()
