"""A node over files in memory: no socket, no thread, no clock but the one that a test moves."""

from __future__ import annotations

import random
from array import array
from collections import deque
from typing import TYPE_CHECKING

from penstock.broker.consumer import Consumer
from penstock.daemon.logging import Logger
from penstock.log.data_path import JOURNAL, DataPath
from penstock.log.disk import Disk
from penstock.log.journal import Journal
from penstock.log.topic_log import LogOptions
from penstock.nsqd.home import Clock
from penstock.nsqd.node import Node
from penstock.nsqd.options import Options
from penstock.protocol.batch import records
from tests.kit import MemoryFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.broker.channel import Channel
    from penstock.errors import LogError
    from penstock.log.files import Files
    from penstock.log.topic_log import TopicLog
    from penstock.log.work import Work
    from penstock.nsqd.home import Home

S = 10**9
PATH = "/data"
SPINS = 1000


class Ticket:
    """A publish, and how it was answered."""

    def __init__(self) -> None:
        self.answers: list[LogError | None] = []

    def done(self, error: LogError | None) -> None:
        self.answers.append(error)


class Hand:
    """A consumer's sink."""

    def __init__(self) -> None:
        self.unsent = 0
        self.offsets: list[int] = []
        self.ended = False

    def send(self, frames: bytes, offsets: Sequence[int]) -> None:
        self.offsets += offsets

    def end(self) -> None:
        self.ended = True


class World:
    """A node that can be killed and started again on the same files."""

    def __init__(self, files: Files | None = None, boot: str = "b", /, **options: object) -> None:
        self.boot = boot
        self.files = files or MemoryFiles()
        if files is None:
            self.files.make_directory(PATH)
        self.options = Options(**{"retention_bytes": 0, "min_free": 0, **options})  # type: ignore[arg-type]
        self.lines: list[str] = []
        self.clock = Clock()
        self.clock.now, self.clock.wall = 100 * S, 1_700_000_000 * S
        self.works: deque[tuple[Work, Callable[[], None]]] = deque()
        self.start()

    def start(self) -> None:
        self.works.clear()
        disk = Disk(self.files)
        log_options = LogOptions(self.options.max_bytes_per_file, self.options.sync_every)
        data_path = DataPath(PATH, disk=disk, options=log_options, boot=self.boot)
        journal = Journal(disk, f"{PATH}/{JOURNAL}", killed=not data_path.clean)
        logger = Logger("", clock=lambda: 0, write=self._log)
        self.node = Node(self.options, data_path, journal, self.clock, self._run, random.Random(1), logger)
        self.node.restore()

    def pass_unseen(self, ns: int) -> None:
        """Time goes by in a turn: nothing rings."""
        self.clock.now += ns
        self.clock.wall += ns

    def _log(self, line: bytes) -> bool:
        self.lines.append(line.decode())
        return True

    def _run(self, work: Work, done: Callable[[], None]) -> None:
        self.works.append((work, done))

    def work(self) -> None:
        """Whatever threads have to do, until there is nothing."""
        for _ in range(SPINS):
            if not self.works:
                return
            work, done = self.works.popleft()
            work()
            done()
        raise AssertionError("slow work makes slow work, again and again")

    def tick(self, seconds: float = 2) -> None:
        """Time passes, and what it asks for is done."""
        self.clock.now += int(seconds * S)
        self.clock.wall += int(seconds * S)
        self.node.tick()
        self.work()

    def kill(self) -> None:
        """The process ends where it stands, and another begins."""
        self.node.data_path.abandon()
        self.start()

    def restart(self) -> None:
        """It stops in order, and another begins."""
        self.work()
        self.node.close()
        self.start()

    # --- what clients do

    def publish(self, topic: str, *bodies: bytes) -> Ticket:
        home, ticket = self.node.topic(topic), Ticket()
        home.put(bodies, ticket)
        self.node.dirty(home)
        self.node.turn()
        return ticket

    def channel(self, topic: str, name: str) -> Channel:
        return self.node.channel(self.node.topic(topic), name)

    def consume(self, topic: str, channel: str, ready: int = 1000) -> tuple[Channel, Consumer, Hand]:
        found, hand = self.channel(topic, channel), Hand()
        consumer = Consumer(hand, message_timeout=60 * S)
        found.join(consumer)
        found.ready(consumer, ready)
        self.node.pump(found)
        return found, consumer, hand

    def finish(self, topic: str, channel: Channel, consumer: Consumer, offsets: Sequence[int]) -> None:
        base = self.home(topic).base
        assert channel.finish(consumer, array("Q", (base + offset for offset in offsets)), base) is None
        self.node.pump(channel)

    # --- what a test looks at

    def home(self, topic: str) -> Home:
        return self.node.homes[topic]

    def log(self, topic: str) -> TopicLog:
        log = self.home(topic).log
        assert hasattr(log, "chain")
        return log  # type: ignore[return-value]

    def bodies(self, topic: str, offsets: Sequence[int]) -> list[bytes]:
        """What stands at these offsets."""
        found = []
        for offset in offsets:
            block = self.log(topic).read(offset)
            found += [record.body for record in records(block.data) if record.offset == offset] if block else []
        return found
