"""What must be there after a life has ended, and what may: then the model takes over what is.

    clean stop      everything, as it was
    kill            everything but the finishes, attempts and delays since the journal was told last
    power cut       what was on the device; where one of its settings was not, a topic's channels are taken as found

What nobody was answered may be there or not. Nothing is there twice, early, or under another's id.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.simulation.look import FLIGHT, READY, WAITS, Seen, SeenChannel, SeenTopic
from tests.simulation.model import NEVER, Channel, Held, Topic

if TYPE_CHECKING:
    from tests.simulation.model import Model

ALL = 1 << 62


@dataclass
class Bounds:
    """Steps and offsets up to which all is certain."""

    said: int = ALL  # finishes
    sure: int = ALL  # what was asked for and stands in the journal
    flushed: dict[str, int] | None = None  # by incarnation; None: all of it
    put: dict[str, int] | None = None  # steps, of what was deferred
    jumped: int = 0  # how much the monotonic clock is another
    doubted: dict[str, tuple[int, int]] = field(default_factory=dict)  # by incarnation: flushed, and perhaps gone
    brought_back: bool = False  # channels of a damaged journal, from an nsqd.dat that may be older

    def keeps(self, topic: Topic, offset: int) -> bool:
        first, next_ = self.doubted.get(topic.incarnation, (0, 0))
        return self.flushed is None or (offset < self.flushed.get(topic.incarnation, 0) and not first <= offset < next_)

    def keeps_deferred(self, topic: Topic, step: int) -> bool:
        return self.put is None or step <= self.put.get(topic.incarnation, 0)


class Survival:
    """One restart, held against the model before it."""

    def __init__(self, model: Model, bounds: Bounds) -> None:
        self.model = model
        self.bounds = bounds

    def check(self, found: dict[str, SeenTopic]) -> None:
        """All that must be there is; the model goes on with what was found."""
        before = {name: topic for name, topic in self.model.topics.items() if not topic.ephemeral}
        for name, topic in before.items():
            if name in found and found[name].incarnation == topic.incarnation:
                continue
            excused = name in self.model.touching or topic.changed > self.bounds.sure or name in found
            assert excused, f"topic {name} is gone"
            self.model.gone(topic)
        self.model.topics = {}
        self.model.offsets.clear()
        for name, seen in found.items():
            known = before.get(name)
            if known is None or known.incarnation != seen.incarnation:
                known = self._unknown(name, seen, known)
            self._check_topic(known, seen)
            self.model.topics[name] = self._taken_over(known, seen)
        self.model.touching.clear()

    def _unknown(self, name: str, seen: SeenTopic, before: Topic | None) -> Topic:
        """It was deleted, or about to be made; or nothing of its log had reached the device, and it is made again."""
        topic = self.model.forgotten.get(seen.incarnation)
        if (
            topic is None
            and self.bounds.flushed is not None
            and (before or self.model.deleted.get(name, -1) > self.bounds.sure)
        ):
            flushed = before and [offset for offset in before.records if self.bounds.keeps(before, offset)]
            assert not flushed, f"{name} begins anew"
            return Topic(name, seen.incarnation, seen.base, self.model.step, NEVER)
        if topic is None:
            known = self.model.touching | self.model.attempted
            assert name in known, f"topic {name} comes from nowhere"
            return Topic(name, seen.incarnation, seen.base, self.model.step, NEVER)
        assert name in self.model.touching or self.model.deleted[name] > self.bounds.sure, f"{name} was deleted"
        topic.changed = NEVER
        topic.records = {offset: body for offset, body in topic.records.items() if seen.records.get(offset) == body}
        topic.deferred.clear()  # some of it may be gone already
        return topic

    # --- records

    def _check_topic(self, topic: Topic, seen: SeenTopic) -> None:
        for body, time in seen.times.items():
            self.model.timed(body, time)
        if topic.base != seen.base:  # its topic.json never reached the device
            assert not any(self.bounds.keeps(topic, offset) for offset in topic.records), f"{topic.name} has other ids"
            topic.base = seen.base
        durable = (channel.pending for channel in topic.channels.values() if not channel.ephemeral)
        needed = set(topic.waiting.values()).union(*durable)  # ephemeral ones hold no retention
        # on a disk too full even for topic.json, what is consumed goes before that says so
        earliest = max(seen.earliest, seen.begin) if self.model.troubled else seen.earliest
        for offset, body in topic.records.items():
            if offset >= earliest and offset not in seen.records:
                self.model.published[body].seen = False
            if self.bounds.keeps(topic, offset) and (offset >= earliest or body in needed):
                assert seen.records.get(offset) == body, f"{body!r} at {offset} is lost"
        for seen_channel in seen.channels.values():
            self._set_others_apart(seen_channel)
        self._new = set(seen.records.values()) - set(topic.records.values())
        for offset, body in seen.records.items():
            known = topic.records.get(offset)
            assert known in (None, body)
            self.model.new_record(topic, offset, body)
            assert self.model.ids.setdefault(topic.base + offset, body) == body, "an id names two messages"
        self._check_deferred(topic, seen)
        certain = topic.changed <= self.bounds.sure and topic.name not in self.model.touching
        if certain and not self.bounds.brought_back:
            self._check_settings(topic, seen)
            for name, channel in topic.channels.items():
                if not channel.ephemeral:
                    self._check_channel(topic, channel, seen, seen.channels[name])

    def _check_deferred(self, topic: Topic, seen: SeenTopic) -> None:
        there = set(seen.deferred)
        assert len(there) == len(seen.deferred), "deferred twice"
        records = set(seen.records.values())
        assert not there & records, "in the timetable and in the log"
        for body in there:
            assert self.model.published[body].topic == topic.name
            assert self.model.published[body].due
        moved = [self.model.published[body] for offset, body in topic.records.items() if offset >= seen.earliest]
        for publish in [*topic.deferred.values(), *(publish for publish in moved if publish.due)]:
            body = publish.body
            if publish.answered and self.bounds.keeps_deferred(topic, publish.answered):
                assert body in there or body in records, f"deferred {body!r} is lost"

    # --- channels

    def _check_settings(self, topic: Topic, seen: SeenTopic) -> None:
        assert seen.paused == topic.paused
        assert seen.readers == topic.readers
        assert seen.retention == topic.retention
        durable = {name: channel.paused for name, channel in topic.channels.items() if not channel.ephemeral}
        assert {name: channel.paused for name, channel in seen.channels.items()} == durable
        there = set(seen.records.values())
        for body in topic.waiting.values():
            if body in there and not seen.channels:
                assert body in seen.waiting.values(), f"{body!r} does not wait any more"

    def _set_others_apart(self, seen: SeenChannel) -> None:
        """What is not for the channel, and not passed over yet."""
        for body, message in seen.pending.items():
            publish = self.model.published[body]
            if publish.due and publish.wall < seen.since and not message.attempts:
                seen.others.add(body)
        for body in seen.others:
            del seen.pending[body]

    def _check_channel(self, topic: Topic, channel: Channel, whole: SeenTopic, seen: SeenChannel) -> None:
        there = set(whole.records.values())
        where = f"{topic.name}:{channel.name}"
        for body, held in channel.pending.items():
            if body in there:
                assert body in seen.pending, f"{where}: {body!r} is lost"
                self._check_message(where, body, held, seen.pending[body])
        for body in sorted(seen.pending.keys() - channel.pending.keys() - self._new - set(topic.waiting.values())):
            again = channel.done.get(body, -1) > self.bounds.said
            assert again, f"{where}: {body!r} comes again, finished in step {channel.done.get(body)}"

    def _check_message(self, where: str, body: bytes, held: Held, seen: Seen) -> None:
        taken_back = held.changed >= self.bounds.said  # it never left the process, and the journal does not know
        assert seen.attempts <= held.attempts + taken_back, f"{where}: {body!r}"
        assert seen.state != FLIGHT
        if held.changed >= self.bounds.said:  # time that passes tells the journal, and goes on
            return
        assert seen.attempts == held.attempts, f"{where}: {body!r} has {seen.attempts} attempts, not {held}"
        late = self.model.clock.now - self.bounds.jumped - held.until
        if held.state == WAITS and late < 0:
            assert seen.state == WAITS, f"{where}: {body!r} is early"
        if held.state in (READY, FLIGHT):
            assert seen.state == READY, f"{where}: {body!r} waits"

    # --- going on

    def _taken_over(self, topic: Topic, seen: SeenTopic) -> Topic:
        step = self.model.step
        changed = step if topic.name in self.model.touching else min(topic.changed, step)  # in the middle of something
        now = Topic(topic.name, topic.incarnation, topic.base, topic.made, changed)
        now.paused, now.records, now.waiting = seen.paused, seen.records, seen.waiting
        now.readers, now.retention, now.damaged = seen.readers, seen.retention, seen.damaged
        now.deferred = {body: self.model.published[body] for body in seen.deferred}
        for name, channel in seen.channels.items():
            before = topic.channels.get(name)
            now.channels[name] = taken = Channel(name, channel.since, channel.paused, channel.others)
            taken.pending = {
                body: Held(message.state, message.attempts, None, message.until, 0, self.model.step)
                for body, message in channel.pending.items()
            }
            if before is not None:
                taken.done = {body: step for body, step in before.done.items() if body not in taken.pending}
        return now
