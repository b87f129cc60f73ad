# cython: annotation_typing=False
"""The node: its topics and channels, made by first use, remembered in the journal. No sockets, no threads, no clock.

    a turn of the loop:   publishes, FINs, SUBs ... --> `turn`: one batch a topic, answers, deliveries
    a tick:               alarms of channels, what is due; each sync_timeout the journal, retention, flushes

What users ask for (create, delete, pause, empty) stands in the journal before it is answered; what channels did is
told to it once each sync_timeout. Slow work is given to `run`, which a thread or a test stands behind. A topic that
nothing happens to costs nothing: ticks look at those that are awake.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from penstock import NSQ_VERSION
from penstock.errors import DiskFull, LogError, NameTaken, Refused, log_error
from penstock.log import entries as e
from penstock.log.birth import born
from penstock.log.chain import Hole
from penstock.log.memory_log import MemoryLog
from penstock.log.together import MANY, flush_together
from penstock.log.topic_log import TopicLog
from penstock.log.work import Work
from penstock.nsqd import metadata
from penstock.nsqd.alarms import Alarms
from penstock.nsqd.home import Clock, Home
from penstock.nsqd.keeper import Keeper
from penstock.nsqd.meters import Meters
from penstock.nsqd.producers import Producers
from penstock.nsqd.readers import Readers
from penstock.nsqd.restoring import restore
from penstock.nsqd.scribe import Scribe
from penstock.nsqd.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from penstock.broker.channel import Channel
    from penstock.daemon.logging import Logger
    from penstock.log.data_path import DataPath
    from penstock.log.journal import Journal
    from penstock.log.retention import Limits
    from penstock.nsqd.home import Ticket
    from penstock.nsqd.memory import Memory
    from penstock.nsqd.options import Options

DUE_SLICES: Final = 16  # of the timetables that one tick moves, so that others have their turn
STOP: Final = 64  # topics that one tick of a round looks at
PACE: Final = 10**7  # ns from one flush of a topic to the next: a hundred of them a second cost 3 % of the loop
RETRY: Final = 10**9  # ns until what is due, or could not be read, is tried again after an error


class Listener(Protocol):
    """Who is told of topics and channels that come and go: a topic is one without a channel."""

    def made(self, home: Home, channel: str = "") -> None: ...
    def gone(self, topic: str, channel: str = "") -> None: ...


class Node:
    """All topics of one nsqd."""

    def __init__(
        self,
        options: Options,
        data_path: DataPath,
        journal: Journal,
        clock: Clock,
        run: Callable[[Work, Callable[[], None]], None],
        random: Random,
        logger: Logger,
        meters: Meters | None = None,
    ) -> None:
        self.options = options
        self.meters = meters or Meters()
        self.data_path = data_path
        self.clock = clock
        self.logger = logger
        self.homes: dict[str, Home] = {}
        self.home_of: dict[Channel, Home] = {}
        self.scribe = Scribe(journal, clock, logger)
        self.readers = Readers(options.reader_timeout, self.scribe, clock, logger, self.wake)
        self.producers = Producers(options.producer_timeout, self.scribe, clock, logger, self.defer)
        self.changed = False  # nsqd.dat is to be written anew
        self.listener: Listener | None = None
        self.remains: dict[TopicLog, int] = {}  # of topics that are deleted, and their numbers in the journal
        self.held: dict[Home, None] = {}  # R stands: channels that others have are looked up
        self.run = run
        self._random = random
        self.keeper = Keeper(options, logger)
        self._flushes_each = options.sync_every == 1
        self._ordered = False  # in this turn
        self._unsure = False  # publishes wait for what is flushed of the journal
        self._refused: dict[Home, LogError] = {}
        self._dirty: dict[Home, None] = {}
        self._awake: dict[Home, None] = {}  # something happened to them that is not written down or let go of yet
        self._round: deque[Home] = deque()  # those that this round has still to look at
        self._alarms: Alarms[Channel] = Alarms()
        self._looks: Alarms[Home] = Alarms()  # at timetables (wall)
        self._flushes: Alarms[Home] = Alarms()  # that are due and were put off
        self._round_each = options.sync_timeout
        self._pace = PACE if options.sync_every > 1 else 0
        self._ticked = 0

    @property
    def memories(self) -> dict[Channel, Memory]:
        return self.scribe.memories

    @property
    def refused(self) -> LogError | None:
        """Why `/ping` says NOK."""
        return next(iter(self._refused.values()), None)

    # --- topics and channels

    def topic(self, name: str) -> Home:
        """The topic, made if it is not there; LogError where that cannot be written down."""
        home = self.homes.get(name)
        return home if home is not None else self._make_topic(name)

    def _make_topic(self, name: str) -> Home:
        if name.endswith("#ephemeral"):
            home = self.home(name, MemoryLog(born(name), self.options.mem_queue_size), 0)
        else:
            home = self.register(self.data_path.create(name), 0)
            self.changed = True
        self.homes[name] = home
        self.logger.info("TOPIC(%s): created", name)
        if self.listener is not None:
            self.listener.made(home)
        return home

    def hold(self, home: Home) -> None:
        """Until `release`, R stands: channels that are still to be made get all that is published."""
        home.topic.hold_back(True)
        self.held[home] = None

    def release(self, home: Home) -> None:
        """The look-up is over; a topic that was deleted meanwhile is none of these any more."""
        if home not in self.held:
            return
        del self.held[home]
        if home.topic.channels and not home.topic.paused:
            try:
                self._order_routed(home, follows=True)
            except LogError as error:  # then the next start looks them up once more
                self.logger.error("TOPIC(%s): %s", home.topic.name, error)
        home.topic.hold_back(False)
        home.topic.route(self.clock.now)
        self.wake(home)

    def register(self, log: TopicLog, routed: int) -> Home:
        """A home for a log that the journal did not know, R at `routed`."""
        number, name = self.scribe.topic_number(), log.birth.name
        home = self.home(name, log, routed)
        home.number = number
        self._order_routed(home, e.TopicCreated(number, name, log.birth.incarnation), follows=False)
        return home

    def home(self, name: str, log: TopicLog | MemoryLog, routed: int) -> Home:
        return Home(
            name,
            log,
            routed=routed,
            bound=self.options.mem_queue_size,
            clock=self.clock,
            run=self.run,
            set_alarm=self._set_alarm,
            dirty=self.dirty,
            unreadable=self._unreadable,
            random=self._random,
            meters=self.meters,
            latency_window=self.options.latency_window,
            sure=self._is_sure if self._flushes_each else None,
        )

    def _is_sure(self) -> bool:
        return self.scribe.sure

    def channel(self, home: Home, name: str, cursor: int | None = None, *, since: int | None = None) -> Channel:
        """The channel, made if it is not there, at R or at `cursor`; R follows from then on.

        What was deferred before `since` is not for it.
        """
        channel = home.topic.channels.get(name)
        if channel is not None:
            return channel
        if name in home.topic.readers:
            raise NameTaken(f"{home.topic.name}:{name} is a reader")
        durable = home.number >= 0 and not name.endswith("#ephemeral")
        since = self._since(home, cursor) if since is None else since
        entries: list[e.Entry] = []
        if durable:
            number = self.scribe.channel_number()
            begin = home.topic.routed if cursor is None else cursor
            entries.append(e.ChannelCreated(number, home.number, name, begin, since))
        self._order_routed(home, *entries, follows=not home.topic.paused and not home.topic.held_back)
        channel = home.topic.add_channel(name, since, cursor)
        self.home_of[channel] = home
        if durable:
            self.scribe.watch(channel, number)
            self.changed = True
        self.logger.info("TOPIC(%s): new channel(%s)", home.topic.name, name)
        if self.listener is not None:
            self.listener.made(home, name)
        self.wake(home)
        home.topic.route(self.clock.now)
        return channel

    def _since(self, home: Home, cursor: int | None) -> int:
        """Which deferred messages are for a new channel: those published since; all, where it begins in the past."""
        if cursor is not None:
            return 0 if cursor < home.topic.latest else self.clock.wall
        return self.clock.wall if home.topic.follows else home.stands_since

    def _order_routed(self, home: Home, *entries: e.Entry, follows: bool) -> None:
        """The entries, and whether R goes on behind them; an ephemeral topic is not written down."""
        when = self.clock.wall if home.topic.follows or follows else home.stands_since
        if home.number >= 0:
            self.scribe.order(*entries, e.Routed(home.number, home.topic.routed, follows, when))
            self.flush_orders()
        home.stands_since = when

    def delete_channel(self, home: Home, name: str) -> None:
        """Its consumers go with it."""
        channel = home.topic.channels[name]
        memory = self.memories.get(channel)
        entries = [e.ChannelDeleted(memory.number)] if memory else []
        others = len(home.topic.channels) > 1
        self._order_routed(home, *entries, follows=others and home.topic.follows)
        self.changed = self.changed or memory is not None
        self._send_away(home, name)
        self.logger.info("TOPIC(%s): deleted channel %s", home.topic.name, name)
        if home.topic.ephemeral and not home.topic.channels:
            self.delete_topic(home)

    def _send_away(self, home: Home, name: str) -> None:
        channel = home.topic.remove_channel(name)
        self.memories.pop(channel, None)
        self.home_of.pop(channel, None)
        self._alarms.drop(channel)
        if self.listener is not None:
            self.listener.gone(home.topic.name, name)
        for consumer in list(channel.consumers):
            consumer.sink.end()

    def delete_topic(self, home: Home) -> None:
        """Its channels and their consumers go with it; what was published is answered first."""
        name = home.topic.name
        if home.number >= 0:
            self.scribe.order(e.TopicDeleted(home.number))
            self.changed = True
        home.write()
        home.fail_waiting(Refused(f"{name}: deleted"))
        for channel in list(home.topic.channels):
            self._send_away(home, channel)
        del self.homes[name]
        self.readers.forget(home)
        self.producers.forget(home)
        for where in (self._dirty, self._awake, self._refused, self.held):
            where.pop(home, None)
        self._looks.drop(home)
        self._flushes.drop(home)
        if not isinstance(home.log, MemoryLog):
            self.remove(home.log, home.number)
        self.logger.info("TOPIC(%s): deleted", name)
        if self.listener is not None:
            self.listener.gone(name)

    def remove(self, log: TopicLog, number: int | None) -> None:
        """The journal says that it is gone: should this not work, the next round or the next start removes it."""
        try:
            self.run(self.data_path.delete(log), _nothing)
        except LogError as error:
            if number is not None:
                self.remains[log] = number
            self.logger.error("TOPIC(%s): %s", log.birth.name, error)

    def pause_topic(self, home: Home, paused: bool) -> None:
        follows = bool(home.topic.channels) and not paused and not home.topic.held_back
        self._order_routed(home, e.TopicPaused(home.number, paused), follows=follows)
        self.changed = self.changed or home.number >= 0
        home.topic.paused = paused
        home.topic.route(self.clock.now)
        self.wake(home)

    def pause_channel(self, channel: Channel, paused: bool) -> None:
        if memory := self.memories.get(channel):
            self.scribe.order(e.ChannelPaused(memory.number, paused))
            self.changed = True
        channel.paused = paused
        self.pump(channel)

    def retain(self, home: Home, wanted: Limits) -> None:
        """What the topic keeps of consumed data, from the next round on."""
        if home.number >= 0:
            self.scribe.order(e.Retention(home.number, wanted.bytes, wanted.time))
        home.retention = wanted
        self.wake(home)

    def empty_topic(self, home: Home) -> None:
        """What no channel was given yet becomes a hole."""
        topic = home.topic
        if home.number >= 0:
            first, next_ = topic.waiting
            hole = e.Holes(home.number, first, next_, e.pack_holes([Hole(first, next_, "emptied")]))
            self.scribe.order(hole, e.Routed(home.number, next_, topic.follows, self.clock.wall))
        home.stands_since = self.clock.wall
        home.log.add_hole(Hole(*topic.empty(), "emptied"))
        self.wake(home)

    def empty_channel(self, channel: Channel) -> None:
        """Nothing that was published so far is for it any more."""
        if memory := self.memories.get(channel):
            self.scribe.order(e.Emptied(memory.number, channel.limit, self.clock.wall))
        channel.empty(self.clock.wall)
        if memory is not None:
            memory.forget()
        self.pump(channel)

    def rewind(self, channel: Channel, cursor: int) -> None:
        """It goes on from there; of what is unfinished nothing is known any more. Back, also what was deferred."""
        home = self.home_of[channel]
        since = 0 if cursor < channel.cursor else channel.since
        if memory := self.memories.get(channel):
            again = e.ChannelCreated(memory.number, home.number, channel.name, cursor, since)
            self.scribe.order(again, e.Rewound(memory.number, cursor))
        home.topic.rewind(channel, cursor)
        channel.since = since
        if memory is not None:
            memory.forget()
        self.logger.info("TOPIC(%s): channel(%s) is rewound to %d", home.topic.name, channel.name, cursor)
        self.pump(channel)

    def left(self, home: Home, channel: Channel) -> None:
        """A consumer is gone: an ephemeral channel goes with its last one."""
        if channel.ephemeral and not channel.consumers and home.topic.channels.get(channel.name) is channel:
            self.delete_channel(home, channel.name)
        else:
            self.pump(channel)

    # --- turns

    def wake(self, home: Home) -> None:
        """Something happened to it: the next tick looks at it."""
        self._awake[home] = None

    def dirty(self, home: Home) -> None:
        """Something was published to it in this turn."""
        self._dirty[home] = None

    def pump(self, channel: Channel) -> None:
        """Its consumers did something, or it may have something to give."""
        if home := self.home_of.get(channel):
            self._awake[home] = None
            channel.pump(self.clock.now)

    def turn(self) -> None:
        """The turn is over: write what it brought, answer, deliver."""
        while self._dirty:
            home, _ = self._dirty.popitem()
            if isinstance(home.write(), DiskFull):
                self._yield_room()
            if self.homes.get(home.topic.name) is home:
                self.wake(home)
                self.look_at(home)
                if home.flush_due:
                    self._flush_soon(home)
        if self._ordered:
            self._ordered = False
            self._flush_journal()

    def _flush_soon(self, home: Home) -> None:
        """Now, or where it was flushed a moment ago and nobody waits for it, a moment after that."""
        if home.flushed_at + self._pace <= self.clock.now:
            self.flush(home)
        else:
            self._flushes.set(home, home.flushed_at + self._pace)

    def flush(self, home: Home) -> None:
        """Give a thread what the topic has to do, if nothing of it is under way."""
        try:
            work = home.flush_work()
        except LogError as error:  # a file that cannot be opened now: the next tick tries it again
            self.logger.error("TOPIC(%s): %s", home.topic.name, error)
            self.wake(home)
            return
        if work is not None:
            home.flushed_at = self.clock.now
            self.run(work, lambda: self._flushed(home, work.error))

    def _flushed(self, home: Home, failed: OSError | None) -> None:
        error = home.flushed()
        if self.homes.get(home.topic.name) is not home:
            return
        self.look_at(home)
        if error is not None:
            self._refused[home] = error
            self.logger.error("TOPIC(%s): %s", home.topic.name, error)
            return
        if self._refused.pop(home, None) is not None:
            self.logger.info("TOPIC(%s): healed, it takes messages again", home.topic.name)
        if failed is not None:  # deleting, or the timetable: the next tick tries it again
            self.logger.error("TOPIC(%s): %s", home.topic.name, log_error(failed, f"{failed.filename or 'its files'}"))
            self.wake(home)
        elif home.delete_due:
            self.flush(home)
        elif home.flush_due:
            self._flush_soon(home)

    def _yield_room(self) -> None:
        for home in self.keeper.yield_room(self.homes):
            self.wake(home)
            self.flush(home)

    def defer(self, home: Home, bodies: Sequence[bytes], delay: int, ticket: Ticket, key: bytes = b"") -> None:
        """Deferred: the topic is looked at again when they are due."""
        home.defer(bodies, delay, ticket, key)
        self.wake(home)
        self.look_at(home)
        if home.flush_due:
            self._flush_soon(home)

    def look_at(self, home: Home) -> None:
        """Its timetable has something to do, some time."""
        if (due := home.next_due()) is not None:
            self._looks.set(home, due)

    def _set_alarm(self, when: int, channel: Channel) -> None:
        self._alarms.set(channel, when)

    def _unreadable(self, home: Home, error: LogError) -> None:
        """The disk did not give what its channels want: they ask again."""
        self.logger.error("TOPIC(%s): %s", home.topic.name, error)
        for channel in home.topic.channels.values():
            self._alarms.set(channel, self.clock.now + RETRY)

    # --- ticks

    def next_time(self) -> int:
        """When `tick` has something to do (monotonic)."""
        if self._round or self.scribe.slicing:
            return self.clock.now
        due = self._looks.next - self.clock.wall + self.clock.now
        return min(self._alarms.next, self._flushes.next, due, self._ticked + self._round_each)

    def tick(self) -> None:
        """Alarms that ring now, what is due; and each sync_timeout, what is to be written down, deleted, flushed."""
        for channel in self._alarms.ring(self.clock.now):
            channel.tick(self.clock.now)
            self.pump(channel)
        for home in self._looks.ring(self.clock.wall, DUE_SLICES):
            if self.homes.get(home.topic.name) is home:
                self._move_due(home)
        for home in self._flushes.ring(self.clock.now):
            if home.flush_due:
                self.flush(home)
        if not self._round and self.clock.now - self._ticked >= self.options.sync_timeout:
            self._begin_round()
            self._go_round()
        elif self._round:
            self._go_round()
        elif self.scribe.slicing:
            self._flush_journal()

    def _move_due(self, home: Home) -> None:
        self.wake(home)
        try:
            home.move_due(partial(self.look_at, home))
        except LogError as error:
            self.logger.error("TOPIC(%s): %s", home.topic.name, error)
            self._looks.set(home, self.clock.wall + RETRY)
        else:
            if not home.writing:  # else when that is through
                self.look_at(home)

    def _begin_round(self) -> None:
        """Once each sync_timeout. A round goes from home to home, some at a time, so that others have their turn."""
        self._ticked = self.clock.now
        self.readers.drop_old()
        self.producers.drop_old()
        self._round.extend(self._awake)
        self._awake.clear()
        free = self.data_path.disk.files.free(self.data_path.path)
        self._round.extend(self.keeper.begin(self.homes, free))

    def flush_orders(self) -> None:
        """With a flush each, publishes are answered when the channels that there are, are on the device as well.

        Their flush begins at the turn's end: it may make the journal anew, and what is ordered now is not made yet.
        """
        if self._flushes_each:
            self.scribe.await_all()
            self._unsure = self._ordered = True

    def _flush_journal(self) -> None:
        if (work := self.scribe.keep(partial(Snapshot, self))) is not None:
            self.run(work, lambda: self._journal_flushed(work))
        elif self._unsure and self.scribe.sure:
            self._unsure = False
            for home in self.homes.values():
                home.committed()

    def _journal_flushed(self, work: Work) -> None:
        if work.error is not None:
            self.scribe.slicing = False  # the next round tries again
        elif self._unsure:
            self._flush_journal()

    def _end_round(self) -> None:
        """What the round wrote down is flushed."""
        self._flush_journal()
        remains, self.remains = self.remains, {}
        for log, number in remains.items():
            self.remove(log, number)
        if self.changed:
            self.run(self._metadata_work(), _nothing)

    def _go_round(self) -> None:
        """What these did is written down; what they have no need of is let go of; what they wrote is flushed."""
        homes = dict.fromkeys(self._round.popleft() for _ in range(min(STOP, len(self._round))))
        here = [home for home in homes if self.homes.get(home.topic.name) is home]
        self.scribe.remember(channel for home in here for channel in home.topic.channels.values())
        for home in here:
            self.keeper.look_at(home, self.clock.wall)
            settled = self.producers.settle(home)
            if not home.relax() or not settled:
                self.wake(home)
        self._flush_all(here)
        if not self._round:
            self._end_round()

    def _flush_all(self, homes: list[Home]) -> None:
        logs = [home.log for home in homes if isinstance(home.log, TopicLog)]
        waiting = [log for log in logs if log.unflushed and not log.under_way]
        if len(waiting) < MANY:
            self._flush_each(homes)
        else:
            work = flush_together(self.data_path.disk.files, self.data_path.path, waiting)
            self.run(work, lambda: self._flush_each(homes))

    def _flush_each(self, homes: list[Home]) -> None:
        for home in homes:
            if self.homes.get(home.topic.name) is home:
                self.flush(home)

    def _metadata_work(self) -> Work:
        """nsqd.dat anew."""
        self.changed = False
        topics = [home.topic for home in self.homes.values() if not home.topic.ephemeral]
        as_written = [
            (topic.name, topic.paused, [(c.name, c.paused) for c in topic.channels.values() if not c.ephemeral])
            for topic in topics
        ]
        work = Work()
        files, path = self.data_path.disk.files, self.data_path.path
        work.step(lambda: metadata.write(files, path, metadata.encode(as_written, NSQ_VERSION)))
        work.otherwise(self._metadata_failed)
        return work

    def _metadata_failed(self, error: OSError) -> None:
        self.changed = True
        self.logger.error("writing nsqd.dat: %s", error.strerror)

    # --- starting and stopping

    def restore(self) -> None:
        """Topics and channels as they were."""
        restore(self)
        self.changed = self.changed or not self.data_path.clean  # a kill may have come before it was written
        self.flush_orders()
        self.run(self.data_path.sweep(), _nothing)
        self._ticked = self.clock.now
        for home in self.homes.values():
            self.wake(home)
            self.look_at(home)
            if home.log.committed < home.log.end:  # its consumers wait for the flush
                self.flush(home)

    def close(self) -> None:
        """Write everything down; the folder is left as after a clean stop, unless the journal is not on the device."""
        self.turn()
        self.scribe.remember(self.memories)
        self.scribe.close()
        self._metadata_work()()
        self.data_path.close(clean=self.scribe.journal.failed is None)


def _nothing() -> None:
    pass
