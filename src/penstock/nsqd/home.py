# cython: annotation_typing=False
"""A topic where it lives: the broker's topic, its log, its timetable, and the publishes that wait for an answer.

    publish --> the log's open batch --turn--> written --> answered OK, routed
                                                 '-- with sync_every=1 --flushed--> answered OK, routed

Knows one topic's files and no connection: who publishes gives a ticket and is told when it is done. Slow work goes to
whoever runs it, one at a time, and comes back here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

from penstock.broker.channel import Surroundings
from penstock.broker.topic import Topic
from penstock.errors import LogError, NotRetained, log_error
from penstock.log.entries import NODES
from penstock.log.memory_log import MemoryLog
from penstock.log.retention import Limits
from penstock.log.segment import Block
from penstock.log.topic_log import TopicLog
from penstock.protocol.batch import KEYED

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from penstock.broker.channel import Channel
    from penstock.log.chain import Hole
    from penstock.log.work import Work
    from penstock.nsqd.meters import Meters
    from penstock.protocol.commands import Publish


APART: Final = 1 << 20  # bytes of a batch that a thread writes: here it would hold the loop for milliseconds


class Clock:
    """The two times of this turn: set by whoever drives, read by all."""

    __slots__ = ("now", "wall")

    def __init__(self) -> None:
        self.now = 0  # monotonic ns, for timeouts
        self.wall = 0  # ns of the epoch, for what is stored; it never goes back while the process lives


class Ticket(Protocol):
    """Somebody who waits for an answer."""

    def done(self, error: LogError | None) -> None:
        """What was published is safe as far as the flags ask for, or may not be there at all."""


class Put:
    """What is in the open batch, and who waits for it."""

    __slots__ = ("begun", "bytes", "count", "end", "then", "tickets")

    def __init__(self) -> None:
        self.then: Callable[[], None] | None = None  # before they are answered
        self.begun = 0  # the turn that brought the first of it
        self.tickets: list[Ticket] = []
        self.count = 0
        self.bytes = 0
        self.end = 0  # of the log behind it: committed up to there, they are answered

    def add(self, ticket: Ticket, count: int, size: int) -> None:
        self.tickets.append(ticket)
        self.count += count
        self.bytes += size

    def failed(self, error: LogError) -> None:
        for ticket in self.tickets:
            ticket.done(error)


class Home:
    """One topic of a node, with its log."""

    __slots__ = (
        "_bodies", "_clock", "_deferred", "_dirty", "_meters", "_put", "_run", "_seen", "_sure", "_tickets",
        "_unreadable", "_waiting", "_warm_at", "_warming", "alone", "flushed_at", "log", "number", "retention",
        "stands_since", "topic", "writing",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        log: TopicLog | MemoryLog,
        *,
        routed: int,
        bound: int,
        clock: Clock,
        run: Callable[[Work, Callable[[], None]], None],
        set_alarm: Callable[[int, Channel], None],
        dirty: Callable[[Home], None],
        unreadable: Callable[[Home, LogError], None],
        random: Random,
        meters: Meters,
        latency_window: int,
        sure: Callable[[], bool] | None = None,
    ) -> None:
        self.log = log
        self._sure = sure  # whether what was flushed may be answered: its channels are on the device, too
        self.flushed_at = -1 << 62  # when its last flush began: long ago
        self._dirty = dirty  # the turn's end is to look at it
        self.number = -1  # in the journal
        self.retention = Limits(NODES, NODES)  # what was asked for of this topic alone
        self.stands_since = 0  # wall ns: what is published after that waits for a channel, while R stands
        surroundings = Surroundings(self._block, set_alarm, random, latency_window)
        self.topic = Topic(name, routed=routed, committed=log.committed, bound=bound, surroundings=surroundings)
        self._unreadable = unreadable  # its channels are to be pumped again, some time
        self._clock = clock
        self._meters = meters
        self._run = run
        self._waiting: list[Put] = []  # written, and answered when they are committed
        self._deferred: list[Ticket] = []  # for a flush of the timetable
        self._seen = -1
        self._warming = False
        self._warm_at = -1  # the offset whose bytes a thread has just read
        self._put = Put()
        self._bodies: list[bytes] = []  # each a publish of this turn, to be put together
        self._tickets: list[Ticket] = []  # theirs
        self.writing = False  # a thread writes a batch: others wait for it
        self.alone: list[tuple[Callable[[], LogError | None], Ticket]] = []  # to be batches of their own

    @property
    def base(self) -> int:
        return self.log.birth.base

    @property
    def emptied(self) -> list[Hole]:
        """What users threw away: what the log lacks for another reason, its files say themselves."""
        return self.log.emptied if isinstance(self.log, TopicLog) else []

    # --- publishing

    def publish(self, found: Publish, ticket: Ticket) -> None:
        """Bodies where they were received; the answer comes at the end of the turn, or after a flush."""
        body_bytes = found.stop - found.start - (4 + found.skip) * found.count
        self.log.put_framed(found.data, found.start, found.stop, found.count, self._clock.wall, skip=found.skip)
        self._put.add(ticket, found.count, body_bytes)

    def put(self, bodies: Sequence[bytes], ticket: Ticket) -> None:
        """As `publish`, for bodies on their own."""
        self.log.put(bodies, self._clock.wall)
        self._put.add(ticket, len(bodies), sum(map(len, bodies)))

    def put_soon(self, body: bytes, ticket: Ticket) -> None:
        """As `put` for one of many bodies that the turn brings: they are put together at its end."""
        self._bodies.append(body)
        self._tickets.append(ticket)

    def _put_together(self) -> None:
        bodies, tickets = self._bodies, self._tickets
        self._bodies, self._tickets = [], []
        try:
            self.log.put(bodies, self._clock.wall)
        except LogError as error:
            for ticket in tickets:
                ticket.done(error)
            return
        put = self._put
        put.tickets += tickets
        put.count += len(bodies)
        put.bytes += sum(map(len, bodies))

    def write_alone(
        self, found: Publish | Sequence[bytes], ticket: Ticket, key: bytes, then: Callable[[], None]
    ) -> LogError | None:
        """A batch of its own under a producer's key, while the open batch is empty; `then` before it is answered."""
        try:
            if isinstance(found, Sequence):
                self.put(found, ticket)
            else:
                self.publish(found, ticket)
        except LogError as error:
            ticket.done(error)
            return error
        self._put.then = then
        return self._write(key)

    def write(self) -> LogError | None:
        """The turn is over: one batch of what it brought, and the answers that this allows; why it failed, if so."""
        if self._bodies:
            self._put_together()
        error = self._write()
        while self.alone and not self.writing:
            error = self.alone.pop(0)[0]() or error
        return error

    def _write(self, key: bytes = b"") -> LogError | None:
        put = self._put
        if put.tickets and not put.begun:
            put.begun = self._clock.now
        if self.writing:
            return None  # behind what a thread writes
        self._put = Put()
        try:
            if isinstance(self.log, TopicLog) and self._is_for_a_thread(self.log):
                work = self.log.write_apart(self._clock.wall, key=key)
                self.writing = True
                self._run(work, lambda: self._written_apart(work, put))
                return None
            self.log.write(self._clock.wall, flags=KEYED if key else 0, key=key)
        except LogError as error:
            put.failed(error)
            return error
        self._written(put)
        return None

    def _is_for_a_thread(self, log: TopicLog) -> bool:
        """The open batch would hold the loop: it is large, or the last write took long."""
        return log.pending >= APART or (log.pending > 0 and log.disk.files.slow)

    def _written_apart(self, work: Work, put: Put) -> None:
        self.writing = False
        if work.error is None:
            self._written(put)
        else:
            after, self._put = self._put, Put()
            for each in (put, after):  # what stood behind it is gone as well
                each.failed(log_error(work.error, f"writing {self.topic.name}"))
        self._dirty(self)

    def _written(self, put: Put) -> None:
        self.topic.message_count += put.count
        self.topic.message_bytes += put.bytes
        if put.then is not None:
            put.then()
        put.end = self.log.end
        self._waiting.append(put)
        self.committed()

    def answer_repeat(self, ticket: Ticket) -> None:
        """It was published before: answered when all that was is as safe as the flags ask for."""
        if isinstance(self.log, TopicLog) and self.log.options.sync_every == 1 and self.log.timetable.dirty:
            self._deferred.append(ticket)
            return
        put = Put()
        put.add(ticket, 0, 0)
        put.begun = self._clock.now
        put.end = self.log.end
        self._waiting.append(put)
        self.committed()

    def committed(self) -> None:
        """Answer what may be answered, and route it."""
        committed = self.log.committed
        if self._sure is None or self._sure():
            self._answer_up_to(committed)
        self.topic.advance(committed, self._clock.now)

    def _answer_up_to(self, committed: int) -> None:
        waiting = self._waiting
        while waiting and waiting[0].end <= committed:
            self._answer(waiting.pop(0))
        if self._deferred and isinstance(self.log, TopicLog) and not self.log.timetable.dirty:
            deferred, self._deferred = self._deferred, []
            for ticket in deferred:
                ticket.done(None)

    def _answer(self, put: Put) -> None:
        for ticket in put.tickets:
            ticket.done(None)
        if put.tickets:
            self._meters.answered(self._clock.now - put.begun, len(put.tickets))

    def fail_waiting(self, error: LogError) -> None:
        """A flush failed: whether these survive a power cut is unknown."""
        waiting, self._waiting = self._waiting, []
        deferred, self._deferred = self._deferred, []
        alone, self.alone = self.alone, []
        for put in waiting:
            put.failed(error)
        for ticket in [*deferred, *(ticket for _, ticket in alone)]:
            ticket.done(error)

    # --- blocks for the channels

    def _block(self, offset: int) -> Block | None:
        log = self.log
        if offset >= log.committed:
            return None  # found by the start and not flushed yet: its flush pumps the channels
        try:
            block = log.read(offset, now=offset != self._warm_at)  # also where damage has to be looked over
        except BlockingIOError:
            self._warm(offset)
            return None
        except NotRetained as error:
            return Block(error.earliest, error.earliest, b"")
        except LogError as error:
            self._unreadable(self, error)
            return None
        return block or Block(log.committed, log.committed, b"")

    def _warm(self, offset: int) -> None:
        """A thread reads it from the device; one such read at a time, all channels are pumped after it."""
        if self._warming or not hasattr(self.log, "warm"):
            return
        self._warming = True
        self._run(self.log.warm(offset), lambda: self._warmed(offset))

    def _warmed(self, offset: int) -> None:
        self._warming = False
        self._warm_at = offset
        self.topic.route(self._clock.now)
        self._warm_at = -1

    # --- what waits for its time

    def defer(self, bodies: Sequence[bytes], delay: int, ticket: Ticket, key: bytes = b"") -> None:
        """Until then it is in the timetable; LogError where it cannot be written down."""
        wall = self._clock.wall
        self.log.defer(bodies, wall + delay, wall, key=key)
        self.topic.message_count += len(bodies)
        self.topic.message_bytes += sum(map(len, bodies))
        if isinstance(self.log, TopicLog) and self.log.options.sync_every == 1:
            self._deferred.append(ticket)
        else:
            ticket.done(None)

    def next_due(self) -> int | None:
        """When `move_due` has something to do (wall)."""
        return self.log.next_due

    def move_due(self, prepared: Callable[[], None]) -> bool:
        """Move a slice of what is due into the log, and have what is due soon prepared; whether there is more."""
        wall = self._clock.wall
        if isinstance(self.log, TopicLog):
            while (work := self.log.timetable.prepare(wall)) is not None:
                self._run(work, prepared)
        self.write()  # what was put comes first
        if self.writing:
            return False
        moved = self.log.move_due(wall)
        if moved:
            self.committed()
        return moved > 0

    # --- slow work

    def relax(self) -> bool:
        """Where nothing was published since this was called last, memory is let go; whether all is flushed then too."""
        idle = self._seen == self.log.end
        self._seen = self.log.end
        if idle:
            self.log.relax()
        return idle and not (isinstance(self.log, TopicLog) and self.log.unflushed)

    @property
    def flush_due(self) -> bool:
        return self.log.flush_due or bool(self._deferred)

    @property
    def delete_due(self) -> bool:
        """Something is to go."""
        return isinstance(self.log, TopicLog) and self.log.delete_due

    def flush_work(self) -> Work | None:
        """What a thread has to do for the log and its timetable; what waits for it is answered by `flushed`."""
        return None if isinstance(self.log, MemoryLog) else self.log.work()

    def flushed(self) -> LogError | None:
        """A work came back; why the log takes nothing, if so."""
        refused = self.log.refused if isinstance(self.log, TopicLog) else None
        if refused is not None:
            self.fail_waiting(refused)
        self.committed()
        return refused
