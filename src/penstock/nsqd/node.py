"""The node: its topics and channels, made by first use, remembered in the journal, restored at start. No sockets.

    a turn of the loop:   publishes, FINs, SUBs ... --> `turn`: one batch a topic, one block of the journal, answers
    a tick:               alarms of channels, what is due, flushes

What users ask for (create, delete, pause, empty) stands in the journal before it is answered; what channels did is
told to it once each sync_timeout. Slow work is given to `run`, which a thread or a test stands behind.
"""

from __future__ import annotations

import heapq
from functools import partial
from typing import TYPE_CHECKING, Final

from penstock import NSQ_VERSION
from penstock.broker.channel import NEVER, Channel
from penstock.errors import LogError
from penstock.log import entries as e
from penstock.log.birth import born
from penstock.log.chain import Hole
from penstock.log.memory_log import MemoryLog
from penstock.log.state import NodeState, TopicState
from penstock.log.work import Work
from penstock.nsqd import metadata
from penstock.nsqd.home import Clock, Home
from penstock.nsqd.memory import Memory
from penstock.nsqd.snapshot import Snapshot
from penstock.protocol.names import is_valid

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from penstock.log.data_path import DataPath
    from penstock.log.journal import Journal
    from penstock.log.topic_log import TopicLog
    from penstock.nsqd.home import Ticket
    from penstock.nsqd.logging import Logger
    from penstock.nsqd.options import Options

DUE_SLICES: Final = 16  # of the timetables that one tick moves, so that others have their turn
RETRY: Final = 10**9  # ns until what is due is tried again after an error
SLICES: Final = 16  # of a compaction that one tick writes
BLOCK: Final = 1000  # entries of channels' progress in one block of the journal


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
    ) -> None:
        self.options = options
        self.data_path = data_path
        self.journal = journal
        self.clock = clock
        self.homes: dict[str, Home] = {}
        self.refused: LogError | None = None  # why `/ping` says NOK
        self.changed = False  # nsqd.dat is to be written anew
        self._run = run
        self._random = random
        self._logger = logger
        self.memories: dict[Channel, Memory] = {}
        self._dirty: dict[Home, None] = {}
        self._alarms: list[tuple[int, int, Channel]] = []
        self._alarm_count = 0
        self.home_of: dict[Channel, Home] = {}
        self._looks: dict[Home, int] = {}  # when each topic's timetable is looked at (wall)
        self._due: list[tuple[int, int, Home]] = []  # the same, a heap
        self._unsaid: list[e.Entry] = []  # what the journal did not take
        self._next_topic = 0
        self._next_channel = 0
        self._ticked = 0

    # --- topics and channels

    def topic(self, name: str) -> Home:
        """The topic, made if it is not there; LogError where that cannot be written down."""
        home = self.homes.get(name)
        return home if home is not None else self._make_topic(name)

    def _make_topic(self, name: str) -> Home:
        if name.endswith("#ephemeral"):
            home = self._home(name, MemoryLog(born(name), self.options.mem_queue_size), 0)
        else:
            log = self.data_path.create(name)
            number = self._next_topic
            self.journal.append(
                [
                    e.TopicCreated(number, name, log.birth.incarnation),
                    e.Routed(number, 0, False, self.clock.wall),
                ],
                self.clock.wall,
            )
            self._next_topic += 1
            home = self._home(name, log, 0)
            home.number = number
        self.homes[name] = home
        self.changed = True
        self._logger.info("TOPIC(%s): created", name)
        return home

    def _home(self, name: str, log: TopicLog | MemoryLog, routed: int) -> Home:
        return Home(
            name,
            log,
            routed=routed,
            bound=self.options.mem_queue_size,
            clock=self.clock,
            run=self._run,
            set_alarm=self._set_alarm,
            random=self._random,
        )

    def channel(self, home: Home, name: str) -> Channel:
        """The channel, made if it is not there; R follows from then on."""
        channel = home.topic.channels.get(name)
        if channel is not None:
            return channel
        durable = home.number >= 0 and not name.endswith("#ephemeral")
        if durable:
            number, self._next_channel = self._next_channel, self._next_channel + 1
            created = e.ChannelCreated(number, home.number, name, home.topic.routed, self.clock.wall)
            following = e.Routed(home.number, home.topic.routed, not home.topic.paused, self.clock.wall)
            self.journal.append([created, following], self.clock.wall)
        channel = home.topic.add_channel(name, self.clock.wall)
        self.home_of[channel] = home
        if durable:
            self.memories[channel] = Memory(channel, number, self.clock)
            self.changed = True
        self._logger.info("TOPIC(%s): new channel(%s)", home.topic.name, name)
        home.topic.route(self.clock.now)
        return channel

    def delete_channel(self, home: Home, name: str) -> None:
        channel = home.topic.channels[name]
        memory = self.memories.get(channel)
        if memory is not None:
            entries: list[e.Entry] = [e.ChannelDeleted(memory.number)]
            if len(home.topic.channels) == 1:
                entries.append(e.Routed(home.number, home.topic.routed, False, self.clock.wall))
            self.journal.append(entries, self.clock.wall)
            del self.memories[channel]
            self.changed = True
        home.topic.remove_channel(name)
        self.home_of.pop(channel, None)
        self._logger.info("TOPIC(%s): deleted channel %s", home.topic.name, name)
        if home.topic.ephemeral and not home.topic.channels:
            self.delete_topic(home)

    def delete_topic(self, home: Home) -> None:
        name = home.topic.name
        if home.number >= 0:
            self.journal.append([e.TopicDeleted(home.number)], self.clock.wall)
            self.changed = True
        for channel in list(home.topic.channels):
            self._forget(home.topic.remove_channel(channel))
        del self.homes[name]
        self._dirty.pop(home, None)
        if not isinstance(home.log, MemoryLog):
            self._run(self.data_path.delete(home.log), _nothing)
        self._logger.info("TOPIC(%s): deleted", name)

    def _forget(self, channel: Channel) -> None:
        self.memories.pop(channel, None)
        self.home_of.pop(channel, None)

    def pause_topic(self, home: Home, paused: bool) -> None:
        if home.number >= 0:
            follows = bool(home.topic.channels) and not paused
            routed = e.Routed(home.number, home.topic.routed, follows, self.clock.wall)
            self.journal.append([e.TopicPaused(home.number, paused), routed], self.clock.wall)
            self.changed = True
        home.topic.paused = paused
        home.topic.route(self.clock.now)

    def pause_channel(self, channel: Channel, paused: bool) -> None:
        if memory := self.memories.get(channel):
            self.journal.append([e.ChannelPaused(memory.number, paused)], self.clock.wall)
            self.changed = True
        channel.paused = paused
        channel.pump(self.clock.now)

    def empty_topic(self, home: Home) -> None:
        """What no channel was given yet becomes a hole."""
        topic = home.topic
        if home.number >= 0:
            packed = e.pack_holes([Hole(topic.routed, topic.committed, "emptied")])
            hole = e.Holes(home.number, topic.routed, topic.committed, packed)
            routed = e.Routed(home.number, topic.committed, topic.follows, self.clock.wall)
            self.journal.append([hole, routed], self.clock.wall)
        home.log.add_hole(Hole(*topic.empty(), "emptied"))

    def empty_channel(self, channel: Channel) -> None:
        if memory := self.memories.get(channel):
            self.journal.append([e.Emptied(memory.number, channel.limit, self.clock.wall)], self.clock.wall)
        channel.empty(self.clock.wall)
        if memory is not None:
            memory.forget()

    # --- turns and ticks

    def dirty(self, home: Home) -> None:
        """Something was published to it in this turn."""
        self._dirty[home] = None

    def turn(self) -> None:
        """The turn is over: write what it brought, answer, deliver."""
        while self._dirty:
            home, _ = self._dirty.popitem()
            home.write()
            if home.log.flush_due:
                self.flush(home)

    def flush(self, home: Home) -> None:
        """Give a thread what the topic has to do, if nothing of it is under way."""
        work = home.flush_work()
        if work is not None:
            self._run(work, lambda: self._flushed(home))

    def _flushed(self, home: Home) -> None:
        self.refused = home.flushed()
        if self.refused is not None:
            self._logger.error("TOPIC(%s): %s", home.topic.name, self.refused)
        elif home.flush_due:
            self.flush(home)

    def defer(self, home: Home, bodies: list[bytes], delay: int, ticket: Ticket) -> None:
        """Deferred: the topic is looked at again when they are due."""
        home.defer(bodies, delay, ticket)
        self._look_at(home)
        if home.flush_due:
            self.flush(home)

    def _look_at(self, home: Home) -> None:
        due = home.next_due()
        if due is not None and due < self._looks.get(home, NEVER):
            self._looks[home] = due
            heapq.heappush(self._due, (due, id(home), home))

    def _set_alarm(self, when: int, channel: Channel) -> None:
        self._alarm_count += 1
        heapq.heappush(self._alarms, (when, self._alarm_count, channel))

    def next_time(self) -> int:
        """When `tick` has something to do (monotonic)."""
        when = min(self._alarms[0][0] if self._alarms else NEVER, self._ticked + self.options.sync_timeout)
        if self._due:
            when = min(when, self._due[0][0] - self.clock.wall + self.clock.now)
        return when

    def tick(self) -> None:
        """Alarms that ring now, what is due; and each sync_timeout, what is to be written down and flushed."""
        self._ring()
        self._move_due()
        if self.clock.now - self._ticked >= self.options.sync_timeout:
            self._ticked = self.clock.now
            self.remember()
            self._keep_journal()
            if self.changed:
                self._run(self._metadata_work(), _nothing)
            for home in self.homes.values():
                home.relax()
                self.flush(home)

    def _ring(self) -> None:
        now = self.clock.now
        while self._alarms and self._alarms[0][0] <= now:
            when, _, channel = heapq.heappop(self._alarms)
            if channel.alarm == when:
                channel.tick(now)
                channel.pump(now)

    def _move_due(self) -> None:
        for _ in range(DUE_SLICES):
            if not self._due or self._due[0][0] > self.clock.wall:
                return
            due, _, home = heapq.heappop(self._due)
            if self._looks.get(home) != due or self.homes.get(home.topic.name) is not home:
                continue
            del self._looks[home]
            try:
                home.move_due(partial(self._look_at, home))
            except LogError as error:
                self._logger.error("TOPIC(%s): %s", home.topic.name, error)
                self._looks[home] = again = self.clock.wall + RETRY
                heapq.heappush(self._due, (again, id(home), home))
                continue
            self._look_at(home)

    def remember(self) -> None:
        """Tell the journal what the channels did; what it does not take now it gets the next time."""
        for memory in self.memories.values():
            self._unsaid += memory.changes()
        try:
            while self._unsaid:
                self.journal.append(self._unsaid[:BLOCK], self.clock.wall)
                del self._unsaid[:BLOCK]
        except LogError as error:
            self._logger.error("journal: %s", error)

    def _keep_journal(self) -> None:
        """Compact it where it has grown, and flush it."""
        self._compact()
        work = self.journal.flush_work() if self.journal.wants_flush else None
        if work is not None:
            self._run(work, _nothing)

    def _compact(self) -> None:
        if self.journal.wants_compaction:
            self.journal.compact(Snapshot(self))
        try:
            for _ in range(SLICES):
                if not self.journal.wants_slice:
                    return
                self.journal.write_slice(self.clock.wall)
        except LogError as error:
            self._logger.error("journal: %s", error)

    def _metadata_work(self) -> Work:
        """nsqd.dat anew."""
        self.changed = False
        topics = [
            {
                "name": home.topic.name,
                "paused": home.topic.paused,
                "channels": [
                    {"name": channel.name, "paused": channel.paused}
                    for channel in home.topic.channels.values()
                    if not channel.ephemeral
                ],
            }
            for home in self.homes.values()
            if not home.topic.ephemeral
        ]
        data = metadata.encode(topics, NSQ_VERSION)
        work = Work()
        work.step(lambda: metadata.write(self.data_path.disk.files, self.data_path.path, data))
        work.otherwise(lambda error: self._logger.error("writing nsqd.dat: %s", error.strerror))
        return work

    def left(self, home: Home, channel: Channel) -> None:
        """A consumer is gone: an ephemeral channel goes with its last one."""
        if channel.ephemeral and not channel.consumers and home.topic.channels.get(channel.name) is channel:
            self.delete_channel(home, channel.name)

    # --- starting and stopping

    def restore(self) -> None:
        """Topics and channels as they were, from the journal and the logs that are there."""
        state, gone = NodeState(), set()
        for entry in self.journal.replay():
            if isinstance(entry, e.TopicDeleted) and entry.topic in state.topics:
                gone.add(state.topics[entry.topic].incarnation)
            state.apply(entry)
        self._next_topic, self._next_channel = state.next_topic, state.next_channel
        logs = {log.birth.incarnation: log for log in self.data_path.logs}
        for number, topic in state.topics.items():
            if (log := logs.pop(topic.incarnation, None)) is not None:
                self._restore_topic(number, topic, log, state)
            else:
                self._logger.error("TOPIC(%s): its log is gone from %s", topic.name, self.data_path.path)
                self.journal.append([e.TopicDeleted(number)], self.clock.wall)
        for incarnation, log in logs.items():
            self._settle(log, known=incarnation in gone or log.birth.name in self.homes)
        self._merge_metadata()
        self._run(self.data_path.sweep(), _nothing)
        self._ticked = self.clock.now
        for home in self.homes.values():
            self._look_at(home)
            self.flush(home)

    def _settle(self, log: TopicLog, *, known: bool) -> None:
        """A log that the journal does not name: left of a deletion, or of a creation that nobody was told of."""
        if known or (log.end == 0 and not log.deferred_count):
            self._run(self.data_path.delete(log), _nothing)
            return
        self._logger.warn("TOPIC(%s): found, and not in the journal; taken up without channels", log.birth.name)
        number, self._next_topic = self._next_topic, self._next_topic + 1
        created = e.TopicCreated(number, log.birth.name, log.birth.incarnation)
        self.journal.append([created, e.Routed(number, 0, False, self.clock.wall)], self.clock.wall)
        self.homes[log.birth.name] = home = self._home(log.birth.name, log, log.earliest)
        home.number = number

    def _restore_topic(self, number: int, state: TopicState, log: TopicLog, node: NodeState) -> None:
        home = self._home(state.name, log, log.end if state.following else min(state.routed, log.end))
        home.number = number
        home.topic.paused = state.paused
        for hole in log.holes(log.earliest, log.end):
            home.topic.add_hole(hole.first, hole.next)
        for hole in state.holes:
            home.topic.add_hole(hole.first, hole.next)
            log.add_hole(hole)
        for name, channel_number in state.channels.items():
            channel_state = node.channels[channel_number]
            channel = home.topic.add_channel(name, channel_state.since)
            channel.cursor = min(max(channel_state.cursor, 0), log.end)
            channel.paused = channel_state.paused
            self.home_of[channel] = home
            self.memories[channel] = memory = Memory(channel, channel_number, self.clock)
            memory.restore(channel_state)
            channel.tick(self.clock.now)
        self.homes[state.name] = home
        home.topic.route(self.clock.now)

    def _merge_metadata(self) -> None:
        """Make what an nsqd.dat asks for that is not our own."""
        try:
            topics = metadata.foreign(self.data_path.disk.files, self.data_path.path)
            for topic in topics:
                if not is_valid(topic["name"]):
                    continue
                home = self.topic(topic["name"])
                for channel in topic.get("channels") or []:
                    if is_valid(channel["name"]):
                        self.pause_channel(self.channel(home, channel["name"]), bool(channel.get("paused")))
                if topic.get("paused"):
                    self.pause_topic(home, True)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._logger.error("nsqd.dat is passed over, it is damaged: %s", error)

    def close(self) -> None:
        """Write everything down; the folder is left as after a clean stop."""
        self.turn()
        self.remember()
        while (work := self.journal.flush_work()) is not None:
            work()
            if work.error is not None:
                break
        self._metadata_work()()
        self.data_path.close()


def _nothing() -> None:
    pass
