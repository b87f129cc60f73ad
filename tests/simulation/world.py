"""A whole nsqd without sockets, threads and real time: a node over a disk in memory, its clock, and how lives end.

    world = World(rng, options)     a node on an empty disk
    world.turn()                    what a turn of the loop's end does; the oracle looks before any byte leaves
    world.pass_time(ns)             alarms and ticks at their exact times
    world.work(number)              a flush or other slow work is done: at once, or `run` now and back later
    world.kill() / cut() / stop()   a life ends; `start` begins the next on what the disk then holds

It stands where the daemon's `Service` stands for sessions. Calls of the file system may fail, or be the last one of
this process.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.broker.channel import Channel
from penstock.log.data_path import JOURNAL, DataPath
from penstock.log.disk import Disk
from penstock.log.journal import Journal
from penstock.log.topic_log import LogOptions
from penstock.nsqd.home import Clock
from penstock.nsqd.node import Node
from penstock.protocol.identify import Agreement, Offer
from penstock.protocol.parser import Limits
from tests.kit import Call, FailingFiles, PowerCuts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

    from penstock.log.work import Work
    from penstock.nsqd.options import Options
    from penstock.nsqd.session import Session
    from tests.simulation.wire import Wire

S = 10**9
MS = 10**6
PATH = "/data"
ROOM = 4 << 10  # of the shared buffer: small, so that commands do not fit
SPINS = 100  # ticks without time passing that are no loop yet


class Killed(BaseException):
    """The process is gone, in the middle of a call."""


class Job(NamedTuple):
    """Slow work that a thread has not done, or that has not come back."""

    work: Work
    done: Callable[[], None]


class Log:
    """What the node logs; `lines` are for people."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.journal_errors = 0

    def info(self, text: str, *values: Any) -> None:
        self.lines.append(text % values)

    warn = info

    def error(self, text: str, *values: Any) -> None:
        self.lines.append("ERROR " + text % values)
        self.journal_errors += text.startswith("journal")


class World:
    """One nsqd, life after life."""

    def __init__(self, rng: Random, options: Options, *, max_bytes_per_file: int = 4096) -> None:
        self.rng = rng
        self.options = options
        self.log_options = LogOptions(max_bytes_per_file, options.sync_every)
        self.limits = Limits(
            options.max_msg_size, options.max_body_size, options.max_rdy_count, options.max_req_timeout
        )
        self.offer = Offer(
            max_rdy_count=options.max_rdy_count,
            max_msg_timeout=options.max_msg_timeout,
            max_heartbeat_interval=options.max_heartbeat_interval,
            min_output_buffer_timeout=options.min_output_buffer_timeout,
            max_output_buffer_timeout=options.max_output_buffer_timeout,
            max_output_buffer_size=options.max_output_buffer_size,
            max_deflate_level=options.max_deflate_level,
        )
        self.defaults = Agreement(heartbeat_interval=30 * S, msg_timeout=options.msg_timeout, output_buffer_timeout=0)
        self.shared = bytearray(ROOM)
        self.clock = Clock()
        self.clock.now, self.clock.wall = 1000 * S, 1_700_000_000 * S
        self.boot = 1
        self.jumped = 0  # how much the monotonic clock is another since the last life
        self.beneath = PowerCuts()
        self.beneath.make_directory(PATH)
        self.beneath.flush_all(PATH)
        self.calls_left: int | None = None  # of the file system until the process is killed
        self.logger = Log()
        self.wires: list[Wire] = []
        self.of_session: dict[Session, Wire] = {}
        self.jobs: list[Job] = []  # nobody began them
        self.back: list[Job] = []  # run, and on their way back to the loop
        self.before_bytes_leave: Callable[[], None] = lambda: None
        self.ticked: Callable[[], None] = lambda: None
        self._pumping: dict[Channel, None] = {}

    # --- what sessions ask of a service

    def pump(self, channel: Channel) -> None:
        self._pumping[channel] = None

    def beats(self, session: Session) -> None:
        """Nobody's heart beats here."""

    def read_clock(self) -> None:
        """Time stands still in a turn here."""

    def outgoing(self, wire: Wire) -> None:
        """At the end of the turn every wire is looked at."""

    # --- lives

    def start(self) -> None:
        """Recover and restore what the disk holds."""
        self.files = FailingFiles(self.beneath)
        self.files.before = self._count
        self.disk = Disk(self.files, limit=8)
        data_path = DataPath(PATH, disk=self.disk, options=self.log_options, boot=f"boot-{self.boot}")
        self.journal = Journal(self.disk, f"{PATH}/{JOURNAL}", floor=2048, killed=not data_path.clean)
        self.node = Node(self.options, data_path, self.journal, self.clock, self.run, self.rng, self.logger)  # type: ignore[arg-type]
        found = self.journal.end
        self.node.restore()
        self.told_anew = self.journal.end > found  # what only a foreign nsqd.dat or a log said

    def kill(self) -> None:
        """What was written is there; what was to be done is not done."""
        self._forget()
        self.beneath = self.beneath.now.kill()

    def cut(self) -> None:
        """The power goes: of what was not flushed anything may be lost, or torn."""
        self._forget()
        self.beneath = PowerCuts(next(self.beneath.now.cuts(self.rng, 1)))
        self.boot += 1
        now = self.rng.randrange(1, 100) * S
        self.jumped = now - self.clock.now
        self.clock.now = now

    def stop(self) -> None:
        """A clean stop: slow work comes back first."""
        self.turn()
        self.finish_jobs()
        self.node.close()
        self.kill()

    def _forget(self) -> None:
        self.calls_left = None
        self.jumped = 0
        self.wires.clear()
        self.of_session.clear()
        self.jobs.clear()
        self.back.clear()
        self._pumping.clear()
        self.clock.now += 1
        self.clock.wall += 1

    def _count(self, _call: Call) -> None:
        if self.calls_left is not None:
            if self.calls_left <= 0:
                raise Killed
            self.calls_left -= 1

    @contextmanager
    def unseen(self) -> Iterator[None]:
        """The oracle reads through the node's own log: that neither fails nor kills."""
        left, self.calls_left = self.calls_left, None
        with self.files.healthy():
            yield
        self.calls_left = left

    # --- turns, time, slow work

    def turn(self) -> None:
        """The end of a turn of the loop; and another one where a wire closed, and left its messages to others."""
        wires = -1
        while wires != len(self.wires):
            wires = len(self.wires)
            self.node.turn()
            while self._pumping:
                channel, _ = self._pumping.popitem()
                self.node.pump(channel)
            self.before_bytes_leave()
            for wire in list(self.wires):
                wire.flush()

    def pass_time(self, ns: int) -> None:
        """Ticks come when the node asked for them."""
        until, spins = self.clock.now + ns, 0
        while (when := self.node.next_time()) <= until:
            spins = spins + 1 if when <= self.clock.now else 0
            assert spins < SPINS, "the node asks for a tick again and again, and time stands still"
            self._advance(max(0, when - self.clock.now))
            self._tick()
        self._advance(until - self.clock.now)

    def _advance(self, ns: int) -> None:
        self.clock.now += ns
        self.clock.wall += ns

    def _tick(self) -> None:
        self.node.tick()
        self.ticked()
        self.turn()

    def run(self, work: Work, done: Callable[[], None]) -> None:
        """Slow work of the node: when it is done the simulation decides."""
        self.jobs.append(Job(work, done))

    def do_job(self, number: int) -> None:
        """A thread does it; it comes back with `bring_back`."""
        job = self.jobs.pop(number)
        job.work.run()
        self.back.append(job)

    def bring_back(self, number: int) -> None:
        job = self.back.pop(number)
        job.work.finish()
        job.done()
        self.turn()

    def finish_jobs(self) -> None:
        """All of it, also what comes of it."""
        rounds = 0
        while self.jobs or self.back:
            rounds += 1
            assert rounds < SPINS, "slow work makes slow work, again and again"
            while self.jobs:
                self.do_job(0)
            while self.back:
                self.bring_back(0)
