"""Who a journal is for, in small: topics and channels that do what a broker's do, told to a journal entry by entry.

    owner = Owner(random.Random(1))
    entries = owner.act()           # something happens: the entries that belong in one block
    journal.append(entries, now)
    owner.applied(entries)          # it is written: `owner.state` is what a replay must give
    facts(owner.state)              # all there is to know, as a flat dict
    assert_sound(owner.state)

Twenty-four messages a topic, two topic names, two channel names: few enough that everything meets everything.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeAlias

from penstock.log import entries as e
from penstock.log.chain import Hole
from penstock.log.state import ChannelState, NodeState

END = 24
TOPICS = ("t", "u")
CHANNELS = ("c", "d")

Facts: TypeAlias = dict[tuple[object, ...], object]


def facts(state: NodeState) -> Facts:
    """Every single thing that the state says, also that something is not there."""
    told: Facts = {}
    for name in TOPICS:
        topic = state.topic(name)
        told[name, "life"] = topic and topic.incarnation
        told[name, "paused"] = topic and topic.paused
        told[name, "R"] = topic and (topic.routed, topic.following, topic.routed_at)
        told[name, "retention"] = topic and (topic.retention_bytes, topic.retention_time)
        for offset in range(END):
            told[name, "hole", offset] = topic and [why for first, next_, why in topic.holes if first <= offset < next_]
        for channel in CHANNELS:
            told |= _channel_facts((name, channel), state.channel(name, channel))
    for (number, reader), moved in state.readers.items():
        told[state.topics[number].name, "reader", reader] = moved[2:]
    for (number, key), seen in state.producers.items():
        told[state.topics[number].name, "producer", key] = seen[2:]
    return told


def _channel_facts(place: tuple[object, ...], channel: ChannelState | None) -> Facts:
    told: Facts = {(*place, "there"): channel is not None}
    told[(*place, "paused")] = channel and channel.paused
    messages = {message.offset: message for message in channel.unfinished} if channel else {}
    for offset in range(END):
        fresh = "fresh" if channel and offset >= channel.cursor else "finished"
        told[(*place, offset)] = channel and messages.get(offset, fresh)
    return told


def assert_sound(state: NodeState) -> None:
    """What holds whatever was lost: names and numbers agree, and nothing is unfinished that was not taken."""
    assert {name: state.topics[number].name for name, number in state.names.items()} == {n: n for n in state.names}
    assert len(state.names) == len(state.topics)
    named = {number for topic in state.topics.values() for number in topic.channels.values()}
    assert named == state.channels.keys()
    for number, channel in state.channels.items():
        assert state.topics[channel.topic].channels[channel.name] == number
        assert all(message.offset < channel.cursor for message in channel.unfinished)


class Owner:
    """Draws what happens next from its random numbers."""

    def __init__(self, rng: random.Random, state: NodeState | None = None) -> None:
        self.rng = rng
        self.state = state or NodeState()
        self.now = 0

    def applied(self, entries: list[e.Entry]) -> None:
        self.state.apply_all(entries)

    def act(self) -> list[e.Entry]:
        """What is done belongs together: all of it or nothing."""
        self.now += 1
        while True:
            if entries := self.rng.choice(_ACTS)(self):
                return entries

    # --- topics

    def create_topic(self) -> list[e.Entry]:
        name = self.rng.choice(TOPICS)
        if self.state.topic(name):
            return []
        return [e.TopicCreated(self.state.next_topic, name, f"{self.now:016x}")]

    def about_topic(self) -> list[e.Entry]:
        if not self.state.topics:
            return []
        number = self.rng.choice(sorted(self.state.topics))
        first = self.rng.randrange(END)
        hole = Hole(first, self.rng.randint(first + 1, END), self.rng.choice(("emptied", "lost")))
        return self.rng.choice(
            [
                [e.TopicPaused(number, True), e.Routed(number, first, False, self.now)],
                [e.TopicPaused(number, False), e.Routed(number, first, True, self.now)],
                [e.Retention(number, first, e.NODES)],
                [
                    e.Holes(number, hole.first, hole.next, e.pack_holes([hole])),
                    e.Routed(number, hole.next, True, self.now),
                ],
                [e.Holes(number, 0, first, b"")],
                [e.ReaderMoved(number, "r", first, self.now, False)],
                [e.ProducerSeen(number, b"key", self.now, b"digest", self.now)],
            ]
        )

    def delete_topic(self) -> list[e.Entry]:
        if not self.state.topics or self.rng.random() < 0.7:
            return []
        return [e.TopicDeleted(self.rng.choice(sorted(self.state.topics)))]

    # --- channels

    def create_channel(self) -> list[e.Entry]:
        if not self.state.topics:
            return []
        number = self.rng.choice(sorted(self.state.topics))
        name = self.rng.choice(CHANNELS)
        if name in self.state.topics[number].channels:
            return []
        cursor = self.rng.choice((0, 0, self.rng.randrange(END)))
        return [
            e.ChannelCreated(self.state.next_channel, number, name, cursor, self.now),
            e.Routed(number, cursor, True, self.now),
        ]

    def delete_channel(self) -> list[e.Entry]:
        if not self.state.channels or self.rng.random() < 0.7:
            return []
        return [e.ChannelDeleted(self.rng.choice(sorted(self.state.channels)))]

    def about_channel(self) -> list[e.Entry]:
        if not self.state.channels:
            return []
        number = self.rng.choice(sorted(self.state.channels))
        to = self.rng.randint(0, END)
        return self.rng.choice(
            [
                [e.ChannelPaused(number, self.rng.random() < 0.5)],
                [e.Emptied(number, max(to, self.state.channels[number].cursor), self.now)],
                [e.Rewound(number, to)],
            ]
        )

    def tick(self) -> list[e.Entry]:
        """Some channels went on: messages taken, finished, requeued."""
        return [self._progress(number) for number in sorted(self.state.channels) if self.rng.random() < 0.7]

    def _progress(self, number: int) -> e.Progress:
        channel = self.state.channels[number]
        cursor = self.rng.randint(channel.cursor, min(END, channel.cursor + 6))
        finished, changed = [], []
        for message in channel.unfinished:
            fate = self.rng.random()
            if fate < 0.4:
                finished.append((message.offset, message.offset + 1))
            elif fate < 0.6:
                changed.append((message.offset, message.attempts + 1, self._due()))
        changed += [(offset, 1, self._due()) for offset in range(channel.cursor, cursor) if self.rng.random() < 0.6]
        return e.Progress(number, channel.cursor, cursor, e.pack_ranges(finished), e.pack_messages(changed))

    def _due(self) -> int:
        return self.rng.choice((e.IN_FLIGHT, e.READY, 1_000_000 + self.now))


_ACTS: list[Callable[[Owner], list[e.Entry]]] = [
    Owner.create_topic,
    Owner.about_topic,
    Owner.delete_topic,
    Owner.create_channel,
    Owner.create_channel,
    Owner.delete_channel,
    Owner.about_channel,
    *[Owner.tick] * 4,
]
