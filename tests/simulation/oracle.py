"""Looks at the node before a byte of a turn leaves it, and holds what it has against the model.

Says also what must have survived when a life has ended: `said` is the step up to which the journal has the finishes,
`sure` the step up to which it is on the device, `flushed` how far each log is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from penstock.log.topic_log import TopicLog
from tests.simulation.look import END, FLIGHT, READY, WAITS, records_from
from tests.simulation.model import LATE

if TYPE_CHECKING:
    from penstock.broker.channel import Channel as NodeChannel
    from penstock.nsqd.home import Home
    from tests.simulation.model import Channel, Model
    from tests.simulation.world import World


class Mark(NamedTuple):
    """How far the journal was at the end of a step."""

    end: int
    step: int
    said: int


class Oracle:
    """Between one world and its model."""

    def __init__(self, world: World, model: Model) -> None:
        self.world = world
        self.model = model
        self.said = 0  # finishes up to this step stand in the journal
        self.sure = Mark(0, 0, 0)  # the last mark that is on the device
        self.flushed: dict[str, int] = {}  # by incarnation
        self.put: dict[str, int] = {}  # the step up to which what was deferred is on the device
        self.doubted: dict[str, tuple[int, int]] = {}  # what Linux may have lost, and a later flush does not tell
        self._failed: set[str] = set()  # logs of which a flush failed, and what it lost is not copied yet,
        self._killed: set[str] = set()  # nor will be
        self._marks: list[Mark] = []
        self._ticked = 0
        self._errors = 0
        world.before_bytes_leave = self.watch
        world.ticked = self.ticked

    # --- each turn

    def ticked(self) -> None:
        """After a tick: what it wrote down, what it let run out."""
        world = self.world
        if world.node._ticked != self._ticked and world.logger.journal_errors == self._errors:
            self.said = self.model.step
        self._ticked, self._errors = world.node._ticked, world.logger.journal_errors
        self.model.time_passed()

    def watch(self) -> None:
        """What is new in the node: topics, channels, records; and whether the rest is as it should be."""
        with self.world.unseen():
            for name, home in self.world.node.homes.items():
                self._watch_topic(name, home)
            gone = self.model.topics.keys() - self.world.node.homes.keys()
            for name in gone:
                assert self.model.topics[name].ephemeral, f"{name} is gone"
                self.model.delete_topic(name)
        self._mark()

    def _watch_topic(self, name: str, home: Home) -> None:
        if name not in self.model.topics:
            self.model.made_topic(name, home.log.birth.incarnation, home.base)
        topic = self.model.topics[name]
        for channel in home.topic.channels.values():
            if channel.name not in topic.channels:
                self.model.made_channel(topic, channel.name, channel.since)
        for gone in sorted(topic.channels.keys() - home.topic.channels.keys()):
            assert topic.channels[gone].ephemeral, f"{gone} is gone"
            assert not topic.channels[gone].clients
            self.model.delete_channel(topic, gone)
        if home.log.committed > topic.committed:
            for found in records_from(home, topic.end):
                self.model.committed(topic, *found)
            topic.committed = home.log.committed
            topic.end = max(topic.end, topic.committed)
            self.model.route(topic)

    def _mark(self) -> None:
        journal, step = self.world.journal, self.model.step
        if not self._marks or journal.end > self._marks[-1].end:
            self._marks.append(Mark(journal.end, step, self.said))
        while self._marks and self._marks[0].end <= journal.flushed:
            self.sure = self._marks.pop(0)
        for home in self.world.node.homes.values():
            if isinstance(home.log, TopicLog):
                incarnation = home.log.birth.incarnation
                failed = home.log.refused or any(segment.flush_failed for segment in home.log.chain.segments)
                (self._failed.add if failed else self._failed.discard)(incarnation)
                self.flushed[incarnation] = max(home.log.flushed, self.flushed.get(incarnation, 0))
                if incarnation in self.doubted:
                    continue
                if not home.log.timetable.dirty and home.log.flushed == home.log.end:  # with what was moved
                    self.put[incarnation] = step

    def begins(self) -> None:
        """A life: nothing of it was written down. Only what it found may be gone, not what it adds."""
        self._ticked, self._errors = self.world.node._ticked, self.world.logger.journal_errors
        for home in self.world.node.homes.values():
            if (incarnation := home.log.birth.incarnation) in self._killed:
                first = min(self.flushed.get(incarnation, 0), self.doubted.get(incarnation, (END, 0))[0])
                self.doubted[incarnation] = (first, home.log.end)
        self._killed.clear()

    def killed(self) -> None:
        """Whoever comes next does not know of a flush that failed: what it flushes again may be gone."""
        self._killed, self._failed = self._killed | self._failed, set()

    def all_is_on_the_device(self) -> None:
        """After a power cut: what is found was found there; not what the start itself wrote down."""
        self.doubted.clear()
        self._failed.clear()
        step = self.model.step
        self.said = step
        self._marks.clear()
        self.sure = Mark(self.world.journal.end, step, step)
        if self.world.told_anew:
            self.sure = Mark(0, step - 1, step)
            for topic in self.model.topics.values():
                topic.changed = step

    # --- counts

    def compare(self) -> None:
        """Depths, counts and states, exactly."""
        for name, home in self.world.node.homes.items():
            topic = self.model.topics[name]
            waiting = sum(offset < home.log.committed for offset in topic.waiting)  # flushed, where that is asked for
            more = sum(offset >= home.topic.routed for offset in topic.damaged)
            assert waiting <= home.topic.depth <= waiting + more, f"{name}: depth {home.topic.depth}, not {waiting}"
            assert home.topic.paused == topic.paused
            assert {reader.name: reader.offset for reader in home.topic.readers.values()} == topic.readers
            for offset in topic.readers.values() if not topic.ephemeral else ():
                assert home.log.earliest <= offset, f"{name}: a reader at {offset} has lost what it is to read"
            least = (
                len(topic.deferred) if home.log.committed == home.log.end else 0
            )  # some may be moved, and not flushed
            assert home.log.deferred_count >= least, f"{name}: {home.log.deferred_count} deferred, not {least}"
            for channel in home.topic.channels.values():
                self._compare_channel(home, channel, topic.channels[channel.name])

    def _forget_deleted(self, home: Home, channel: NodeChannel, expected: Channel) -> None:
        """An ephemeral channel holds no retention: what is deleted before it came to it is not for it any more."""
        passed = min(channel.cursor, home.log.earliest)
        for body, held in list(expected.pending.items()) if passed else ():
            offset = self.model.offsets[body]
            if held.state == READY and offset < passed and not channel.unfinished.slots.messages(offset, offset + 1):
                del expected.pending[body]

    def _compare_channel(self, home: Home, channel: NodeChannel, expected: Channel) -> None:
        unfinished = channel.unfinished
        if channel.ephemeral and not home.topic.ephemeral:
            self._forget_deleted(home, channel, expected)
        flights = expected.count(FLIGHT)
        assert unfinished.in_flight == flights, f"{unfinished.in_flight} in flight, not {flights}"
        waiting, ready = home.topic.depth_of(channel) + unfinished.delayed, expected.count(READY, WAITS)
        more = sum(offset >= channel.cursor for offset in self.model.topics[home.topic.name].damaged)
        assert ready <= waiting <= ready + len(expected.others) + more, f"{waiting} wait, not {ready}"
        if channel.cursor == channel.limit:
            expected.others.clear()
        now = self.world.clock.now
        surely = sum(held.state == WAITS and held.until > now for held in expected.pending.values())
        perhaps = sum(held.state == WAITS and held.until + LATE > now for held in expected.pending.values())
        assert surely <= unfinished.delayed <= perhaps, f"{unfinished.delayed} delayed, not {surely} to {perhaps}"
        assert channel.paused == expected.paused
        assert len(channel.consumers) == len(expected.clients)
        assert channel.timeout_count == expected.timeouts
        assert channel.requeue_count == expected.requeues
        for consumer in channel.consumers:
            asks = consumer.waits or consumer.sink.unsent or channel._room(consumer) <= 0
            assert asks, f"a consumer of {channel.name} has room, and is forgotten"
