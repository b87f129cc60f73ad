"""How things are now, in slices: what a compaction of the journal writes. Knows the node's topics and channels."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from penstock.log import entries as e

if TYPE_CHECKING:
    from penstock.broker.channel import Channel
    from penstock.nsqd.home import Home
    from penstock.nsqd.memory import Memory
    from penstock.nsqd.node import Node

THINGS: Final = 256  # topics or channels of one slice
PRODUCERS: Final = 1024
MESSAGES: Final = 4096  # unfinished messages of one slice


class Snapshot:
    """The source of one compaction. What changes meanwhile is said by entries of its own, before or behind a slice."""

    def __init__(self, node: Node) -> None:
        self._homes = [home for home in node.homes.values() if home.number >= 0]
        self._memories: list[tuple[Channel, Memory]] = []  # as it is when all topics are said
        self._node = node
        self._producers_there: list[tuple[Home | None, bytes]] = []

    def __call__(self, mark: Any) -> tuple[list[e.Entry], Any]:
        """Entries from `mark` on, and the mark behind them."""
        stage: str
        place: Any
        stage, place = mark or ("topics", 0)
        if stage == "topics":
            return self._topics(place)
        if stage == "producers":
            return self._producers(place)
        if stage == "channels":
            return self._channels(place)
        return self._pages(*place)

    def _topics(self, place: int) -> tuple[list[e.Entry], Any]:
        entries: list[e.Entry] = [] if place else self._gone()
        for home in islice(self._homes, place, place + THINGS):
            if self._node.homes.get(home.topic.name) is home:
                entries += self._topic(home)
        place += THINGS
        if place < len(self._homes):
            return entries, ("topics", place)
        return entries, ("producers", 0)

    def _gone(self) -> list[e.Entry]:
        """What is deleted and lies there still: else a start would take it up."""
        entries: list[e.Entry] = []
        for log, number in self._node.remains.items():
            entries += [e.TopicCreated(number, log.birth.name, log.birth.incarnation), e.TopicDeleted(number)]
        return entries

    def _producers(self, place: int) -> tuple[list[e.Entry], Any]:
        producers = self._node.producers
        if not place:
            self._producers_there = producers.all()
        there, place = self._producers_there[place : place + PRODUCERS], place + PRODUCERS
        entries: list[e.Entry] = [said for each in there if (said := producers.said(*each)) is not None]
        return entries, ("producers", place) if place < len(self._producers_there) else ("channels", 0)

    def _topic(self, home: Home) -> list[e.Entry]:
        topic = home.topic
        return [
            e.TopicCreated(home.number, topic.name, home.log.birth.incarnation),
            e.TopicPaused(home.number, topic.paused),
            e.Routed(home.number, topic.routed, topic.follows, self._node.clock.wall),
            e.Retention(home.number, home.retention.bytes, home.retention.time),
            e.Holes(home.number, 0, e.END, e.pack_holes(home.emptied)),
            *(e.ReaderMoved(home.number, r.name, r.offset, r.renewed, r.paused) for r in topic.readers.values()),
        ]

    def _channels(self, place: int) -> tuple[list[e.Entry], Any]:
        """Channels with few unfinished messages whole; at one with many, its pages one by one."""
        entries: list[e.Entry] = []
        room = MESSAGES
        if not place:
            self._memories = list(self._node.memories.items())
        for number in range(place, min(place + THINGS, len(self._memories))):
            channel, memory = self._memories[number]
            if self._node.memories.get(channel) is not memory:
                continue
            low = channel.low_water
            entries += self._channel(channel, memory, low)
            next_ = self._page(entries, memory, low)
            if next_ < channel.cursor:
                return entries, ("pages", (number, next_))
            room -= len(channel.unfinished)
            if room <= 0:
                return entries, self._after(number + 1)
        return entries, self._after(place + THINGS)

    def _channel(self, channel: Channel, memory: Memory, low: int) -> list[e.Entry]:
        home = self._node.home_of[channel]
        return [
            e.ChannelCreated(memory.number, home.number, channel.name, low, channel.since),
            e.ChannelPaused(memory.number, channel.paused),
        ]

    def _pages(self, number: int, first: int) -> tuple[list[e.Entry], Any]:
        channel, memory = self._memories[number]
        if self._node.memories.get(channel) is not memory or channel.cursor < first:  # gone, or rewound meanwhile
            return [], self._after(number + 1)
        entries: list[e.Entry] = []
        next_ = self._page(entries, memory, first)
        return entries, ("pages", (number, next_)) if next_ < channel.cursor else self._after(number + 1)

    def _page(self, entries: list[e.Entry], memory: Memory, first: int) -> int:
        """Add what is unfinished from `first` on, and say where that ends."""
        packed, next_ = memory.page(first, MESSAGES)
        entries.append(e.Page(memory.number, first, next_, packed))
        return next_

    def _after(self, number: int) -> Any:
        return ("channels", number) if number < len(self._memories) else None
