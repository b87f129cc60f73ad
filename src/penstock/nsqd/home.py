"""A topic where it lives: the broker's topic, its log, its timetable, and the publishes that wait for an answer.

    publish --> the log's open batch --turn--> written --> answered OK, routed
                                                 '-- with sync_every=1 --flushed--> answered OK, routed

Knows one topic's files and no connection: who publishes gives a ticket and is told when it is done. Slow work goes to
whoever runs it, one at a time, and comes back here.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple, Protocol

from penstock.broker.channel import Surroundings
from penstock.broker.topic import Topic
from penstock.errors import LogError, NotRetained
from penstock.log.memory_log import MemoryLog
from penstock.log.segment import Block
from penstock.log.topic_log import TopicLog

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from penstock.broker.channel import Channel
    from penstock.log.work import Work
    from penstock.protocol.commands import Publish


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


class _Waiting(NamedTuple):
    end: int
    ticket: Ticket


class Home:
    """One topic of a node, with its log."""

    __slots__ = (
        "_clock", "_deferred", "_run", "_seen", "_tickets", "_waiting", "_warm_at", "_warming", "log", "number",
        "put_bytes", "put_count", "stands_since", "topic",
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
        random: Random,
    ) -> None:
        self.log = log
        self.number = -1  # in the journal
        self.stands_since = 0  # wall ns: what is published after that waits for a channel, while R stands
        surroundings = Surroundings(self._block, set_alarm, random)
        self.topic = Topic(name, routed=routed, committed=log.committed, bound=bound, surroundings=surroundings)
        self._clock = clock
        self._run = run
        self._tickets: list[Ticket] = []  # for the batch that is open
        self._waiting: deque[_Waiting] = deque()  # for a flush
        self._deferred: list[Ticket] = []  # for a flush of the timetable
        self._seen = -1
        self._warming = False
        self._warm_at = -1  # the offset whose bytes a thread has just read
        self.put_count = 0  # in the open batch
        self.put_bytes = 0

    @property
    def base(self) -> int:
        return self.log.birth.base

    # --- publishing

    def publish(self, found: Publish, ticket: Ticket) -> None:
        """Bodies where they were received; the answer comes at the end of the turn, or after a flush."""
        body_bytes = found.stop - found.start - (4 + found.skip) * found.count
        self.log.put_framed(found.data, found.start, found.stop, found.count, self._clock.wall, skip=found.skip)
        self._tickets.append(ticket)
        self.put_count += found.count
        self.put_bytes += body_bytes

    def put(self, bodies: Sequence[bytes], ticket: Ticket) -> None:
        """As `publish`, for bodies on their own."""
        self.log.put(bodies, self._clock.wall)
        self._tickets.append(ticket)
        self.put_count += len(bodies)
        self.put_bytes += sum(map(len, bodies))

    def write(self) -> LogError | None:
        """The turn is over: one batch of what it brought, and the answers that this allows; why it failed, if so."""
        tickets, self._tickets = self._tickets, []
        count, self.put_count = self.put_count, 0
        size, self.put_bytes = self.put_bytes, 0
        try:
            self.log.write(self._clock.wall)
        except LogError as error:
            for ticket in tickets:
                ticket.done(error)
            return error
        self.topic.message_count += count
        self.topic.message_bytes += size
        self._waiting.extend(_Waiting(self.log.end, ticket) for ticket in tickets)
        self.committed()
        return None

    def committed(self) -> None:
        """Answer what may be answered, and route it."""
        committed, waiting = self.log.committed, self._waiting
        while waiting and waiting[0].end <= committed:
            waiting.popleft().ticket.done(None)
        if self._deferred and isinstance(self.log, TopicLog) and not self.log.timetable.dirty:
            deferred, self._deferred = self._deferred, []
            for ticket in deferred:
                ticket.done(None)
        self.topic.advance(committed, self._clock.now)

    def fail_waiting(self, error: LogError) -> None:
        """A flush failed: whether these survive a power cut is unknown."""
        waiting, self._waiting = self._waiting, deque()
        deferred, self._deferred = self._deferred, []
        for ticket in [*(entry.ticket for entry in waiting), *deferred]:
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

    def defer(self, bodies: Sequence[bytes], delay: int, ticket: Ticket) -> None:
        """Until then it is in the timetable; LogError where it cannot be written down."""
        wall = self._clock.wall
        self.log.defer(bodies, wall + delay, wall)
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
        return idle and not self._unflushed

    @property
    def _unflushed(self) -> bool:
        log = self.log
        return isinstance(log, TopicLog) and (log.refused is not None or log.flushed < log.end or log.timetable.dirty)

    @property
    def flush_due(self) -> bool:
        return self.log.flush_due or bool(self._deferred)

    @property
    def work_due(self) -> bool:
        """There is more to do for a thread, now that one came back."""
        return self.flush_due or (isinstance(self.log, TopicLog) and self.log.delete_due)

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
