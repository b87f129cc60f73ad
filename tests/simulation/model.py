"""What ought to be: each message of each channel in exactly one state. Plain Python; knows no file and no offset's use.

The node's log tells it what was committed, in order; all else it works out itself from what clients asked and time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.log.entries import NODES
from tests.simulation.look import FLIGHT, READY, WAITS

if TYPE_CHECKING:
    from penstock.nsqd.home import Clock

LATE = 20 * 10**6  # ns: timeouts and delays are due to within this
NEVER = 1 << 63  # a step that is behind all that is certain
ABORTED = 500 * 10**6  # ns: an abort's first delay, twice as long with each attempt


@dataclass
class Publish:
    """A message that somebody asked to publish."""

    topic: str
    body: bytes
    asked: int  # in which step
    wall: int = 0  # when
    due: int = 0  # wall; 0: at once
    answered: int = 0  # in which step it was answered OK
    once: bool = False  # under a producer's key, and perhaps sent several times: then `wall` is the record's
    seen: bool = False  # it was in the log, and no power cut took it

    def is_for(self, channel: Channel) -> bool:
        """What was deferred before a channel was made or emptied is not for it."""
        return not self.due or self.wall >= channel.since


@dataclass
class Held:
    """An unfinished message of a channel."""

    state: str = READY
    attempts: int = 0
    client: object = None
    until: int = 0
    first: int = 0  # when it was given to the client
    changed: int = 0  # in which step


@dataclass
class Channel:
    name: str
    since: int = 0  # wall
    paused: bool = False
    others: set[bytes] = field(default_factory=set)  # not for it, and perhaps not passed over yet
    pending: dict[bytes, Held] = field(default_factory=dict)
    done: dict[bytes, int] = field(default_factory=dict)  # in which step
    clients: list[object] = field(default_factory=list)
    timeouts: int = 0
    requeues: int = 0
    begin: int = 0  # where it was made: what R comes to only then is not for it below

    @property
    def ephemeral(self) -> bool:
        return self.name.endswith("#ephemeral")

    def count(self, *states: str) -> int:
        return sum(held.state in states for held in self.pending.values())


@dataclass
class Topic:
    name: str
    incarnation: str
    base: int
    made: int  # in which step
    changed: int  # in which step anything was asked for that is written down before it is answered
    paused: bool = False
    records: dict[int, bytes] = field(default_factory=dict)
    waiting: dict[int, bytes] = field(default_factory=dict)  # that no channel was given yet
    deferred: dict[bytes, Publish] = field(default_factory=dict)  # answered, not due or not moved yet
    channels: dict[str, Channel] = field(default_factory=dict)
    readers: dict[str, int] = field(default_factory=dict)
    retention: tuple[int, int] = (NODES, NODES)
    damaged: set[int] = field(default_factory=set)  # counted until somebody comes across them
    end: int = 0  # all below is told
    committed: int = 0

    @property
    def ephemeral(self) -> bool:
        return self.name.endswith("#ephemeral")


class Model:
    """The topics of a node, as its clients may rely on them."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.step = 0
        self.topics: dict[str, Topic] = {}
        self.published: dict[bytes, Publish] = {}
        self.ids: dict[int, bytes] = {}
        self.deleted: dict[str, int] = {}  # topics, in which step
        self.offsets: dict[bytes, int] = {}  # of all that is in the logs
        self.touching: set[str] = set()  # topics that this step may make or change
        self.attempted: set[str] = set()  # topics that could not be made, and of which something may be there
        self.forgotten: dict[str, Topic] = {}  # deleted, by incarnation: a power cut may bring them back
        self.troubled = False  # by a disk that fails, now or a moment ago

    # --- what the node did

    def made_topic(self, name: str, incarnation: str, base: int) -> None:
        self.topics[name] = Topic(name, incarnation, base, self.step, self.step)

    def made_channel(self, topic: Topic, name: str, since: int, begin: int | None = None) -> None:
        """At R, or wherever it was asked to begin."""
        assert since <= self.clock.wall
        topic.changed = max(topic.changed, self.step)
        topic.channels[name] = channel = Channel(name, since, begin=begin or 0)
        if begin is not None:
            self._give_from(topic, channel, begin)
        self.route(topic)

    def _give_from(self, topic: Topic, channel: Channel, offset: int) -> None:
        """All from there on that R has passed, whatever became of it in this channel."""
        for each, body in topic.records.items():
            if each >= offset and each not in topic.waiting:
                self._give(channel, body)

    def _give(self, channel: Channel, body: bytes) -> None:
        if self.published[body].is_for(channel):
            channel.pending[body] = Held(changed=self.step)
            channel.done.pop(body, None)
        else:
            channel.others.add(body)

    def committed(self, topic: Topic, offset: int, body: bytes, id_: int, time: int) -> None:
        """A record is in the log, and may be read."""
        self.timed(body, time)
        self.new_record(topic, offset, body)
        assert id_ == topic.base + offset
        assert self.ids.setdefault(id_, body) == body, "an id names two messages"
        topic.waiting[offset] = body

    def timed(self, body: bytes, time: int) -> None:
        """The node says when it was published."""
        if (publish := self.published[body]).once:
            publish.wall = time

    def new_record(self, topic: Topic, offset: int, body: bytes) -> None:
        """It was asked for, is there once, and not early."""
        publish = self.published[body]
        assert publish.topic == topic.name, "a message is in another topic's log"
        assert body not in self.offsets, "a message is in the log twice"
        assert publish.due <= self.clock.wall, "a deferred message is early"
        publish.seen = True
        self.offsets[body] = offset
        topic.deferred.pop(body, None)
        topic.records[offset] = body

    def route(self, topic: Topic) -> None:
        if topic.paused or not topic.channels:
            return
        routed = {offset: body for offset, body in topic.waiting.items() if offset < topic.committed}
        for offset, body in routed.items():
            del topic.waiting[offset]
            for channel in topic.channels.values():
                if offset >= channel.begin:
                    self._give(channel, body)

    def answered(self, publish: Publish) -> None:
        """OK: from now on it must not be lost; unless its topic was emptied while others' answers stood before it."""
        publish.answered = self.step
        if publish.seen or self.deleted.get(publish.topic, -1) >= publish.asked:
            return
        assert publish.due, "answered OK, and not in the log"
        self.topics[publish.topic].deferred[publish.body] = publish

    def delivered(self, client: object, channel: Channel, body: bytes, attempts: int) -> None:
        held = channel.pending.get(body)
        assert held is not None, "delivered, and not due to this channel or finished"
        assert not channel.paused
        assert held.state == READY or (held.state == WAITS and held.until <= self.clock.now), f"delivered while {held}"
        assert attempts == held.attempts + 1
        held.state, held.attempts, held.client = FLIGHT, attempts, client
        held.first = self.clock.now
        held.changed = self.step

    def time_passed(self) -> None:
        """After a tick: what ran out is ready again."""
        for topic in self.topics.values():
            for channel in topic.channels.values():
                for held in channel.pending.values():
                    if held.state == FLIGHT and held.until <= self.clock.now:
                        channel.timeouts += 1
                        self._back(held)
                    elif held.state == WAITS and held.until + LATE <= self.clock.now:
                        self._back(held)

    def _back(self, held: Held, delay: int = 0) -> None:
        held.state, held.client, held.until = (WAITS if delay else READY), None, self.clock.now + delay
        held.changed = self.step

    # --- what clients asked

    def in_flight(self, client: object, channel: Channel, body: bytes) -> Held | None:
        held = channel.pending.get(body)
        return held if held is not None and held.state == FLIGHT and held.client is client else None

    def finish(self, client: object, channel: Channel, body: bytes) -> bool:
        if self.in_flight(client, channel, body) is None:
            return False
        del channel.pending[body]
        channel.done[body] = self.step
        return True

    def requeue(self, client: object, channel: Channel, body: bytes, delay: int) -> bool:
        held = self.in_flight(client, channel, body)
        if held is not None:
            self._back(held, delay)
            channel.requeues += 1
        return held is not None

    def touch(self, client: object, channel: Channel, body: bytes, timeout: int, most: int) -> bool:
        held = self.in_flight(client, channel, body)
        if held is not None:
            held.until = min(self.clock.now + timeout, held.first + most)
        return held is not None

    def left(self, client: object, channel: Channel, unsent: set[bytes], timeout: int, *, aborted: bool) -> None:
        """A client is gone: what never left the process was no attempt."""
        for body, held in channel.pending.items():
            if held.client is not client:
                continue
            if body in unsent:
                held.attempts -= 1
                self._back(held)
            else:
                self._back(held, min(ABORTED << (held.attempts - 1), timeout) if aborted else 0)
        channel.clients.remove(client)

    # --- what administrators asked

    def pause_topic(self, topic: Topic, paused: bool) -> None:
        topic.paused, topic.changed = paused, max(topic.changed, self.step)
        self.route(topic)

    def pause_channel(self, topic: Topic, channel: Channel, paused: bool) -> None:
        channel.paused, topic.changed = paused, max(topic.changed, self.step)

    def empty_topic(self, topic: Topic) -> None:
        for offset, body in list(topic.waiting.items()):
            if offset < topic.committed:
                del topic.waiting[offset]
                del topic.records[offset]
                del self.offsets[body]
        topic.changed = max(topic.changed, self.step)

    def empty_channel(self, topic: Topic, channel: Channel) -> None:
        channel.pending.clear()
        channel.others.clear()
        channel.since = self.clock.wall
        topic.changed = max(topic.changed, self.step)

    def rewind(self, topic: Topic, channel: Channel, offset: int, since: int) -> None:
        """Back, also what was deferred before it was made is for it."""
        assert since in (0, channel.since)
        channel.pending.clear()
        channel.others.clear()
        channel.since = since
        self._give_from(topic, channel, offset)
        topic.changed = max(topic.changed, self.step)

    def retain(self, topic: Topic, retention: tuple[int, int]) -> None:
        topic.retention, topic.changed = retention, max(topic.changed, self.step)

    def commit(self, topic: Topic, reader: str, offset: int) -> None:
        """It never goes back."""
        topic.readers[reader] = max(offset, topic.readers.get(reader, 0))
        topic.changed = max(topic.changed, self.step)

    def delete_reader(self, topic: Topic, reader: str) -> None:
        del topic.readers[reader]
        topic.changed = max(topic.changed, self.step)

    def delete_channel(self, topic: Topic, name: str) -> None:
        del topic.channels[name]
        topic.changed = max(topic.changed, self.step)

    def delete_topic(self, name: str) -> None:
        topic = self.topics.pop(name)
        self.gone(topic)
        for body in topic.records.values():
            del self.offsets[body]

    def gone(self, topic: Topic) -> None:
        """Deleted, or about to be when the process was killed."""
        self.deleted[topic.name] = self.step
        self.forgotten[topic.incarnation] = topic

    def unsure(self) -> None:
        """What was asked of the topics of this step failed: the next life may know of it or not."""
        for name in self.touching & self.topics.keys():
            self.topics[name].changed = NEVER

    def may_fail(self, error: bytes) -> None:
        assert self.troubled, f"nothing was wrong with the disk: {error!r}"
