"""What the journal's entries add up to, in plain Python: for tools, import and export, and tests. Knows no file.

The broker keeps the same in structures of its own. Both fold by these rules:
- An entry about a topic or channel that is not there is passed over: it was deleted, or a slice will name it.
- A name means the topic or channel that was created with it last; the one before is gone.
- No message is unfinished at or above its channel's cursor.
- A `Progress` or a `Page` that begins above the cursor follows an entry that is lost. Nobody knows what was finished
  between, so the cursor stays and those messages come again; what it says of messages below the cursor holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from penstock.log import entries as e
from penstock.log.unfinished import Holes, Unfinished, below

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from penstock.log.entries import Entry

THINGS: Final = 1024  # how many topics, channels, readers or producers a slice says at most,
LIMIT: Final = 4096  # and how many messages or holes

_BEGIN: Final = -1  # of a channel that no slice named yet

Slice: TypeAlias = tuple[list["Entry"], Any]


@dataclass(slots=True)
class TopicState:
    name: str
    incarnation: str
    paused: bool = False
    routed: int = 0
    following: bool = False
    routed_at: int = 0
    retention_bytes: int = e.NODES
    retention_time: int = e.NODES
    holes: Holes = field(default_factory=Holes)
    channels: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class ChannelState:
    topic: int
    name: str
    cursor: int
    since: int
    paused: bool = False
    unfinished: Unfinished = field(default_factory=Unfinished)


class NodeState:
    """Topics, channels, readers and producers as the entries applied so far leave them."""

    def __init__(self) -> None:
        self.topics: dict[int, TopicState] = {}
        self.names: dict[str, int] = {}
        self.channels: dict[int, ChannelState] = {}
        self.readers: dict[tuple[int, str], e.ReaderMoved] = {}
        self.producers: dict[tuple[int, bytes], e.ProducerSeen] = {}
        self.next_topic = 0  # numbers that nothing in the journal means
        self.next_channel = 0

    def topic(self, name: str) -> TopicState | None:
        return self.topics.get(self.names.get(name, -1))

    def channel(self, topic: str, name: str) -> ChannelState | None:
        found = self.topic(topic)
        return self.channels.get(found.channels.get(name, -1)) if found else None

    def apply_all(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.apply(entry)

    def apply(self, entry: Entry) -> None:
        _FOLDS[type(entry)](self, entry)

    # --- topics

    def _topic_created(self, entry: e.TopicCreated) -> None:
        self.next_topic = max(self.next_topic, entry.topic + 1)
        before = self.names.get(entry.name)
        if before is not None and before != entry.topic:
            self._topic_deleted(e.TopicDeleted(before))
        if entry.topic not in self.topics:
            self.topics[entry.topic] = TopicState(entry.name, entry.incarnation)
            self.names[entry.name] = entry.topic

    def _topic_deleted(self, entry: e.TopicDeleted) -> None:
        if topic := self.topics.pop(entry.topic, None):
            del self.names[topic.name]
            for channel in topic.channels.values():
                del self.channels[channel]
            for kept in (self.readers, self.producers):
                for key in [key for key in kept if key[0] == entry.topic]:
                    del kept[key]  # type: ignore[arg-type]

    def _topic_paused(self, entry: e.TopicPaused) -> None:
        if topic := self.topics.get(entry.topic):
            topic.paused = entry.paused

    def _routed(self, entry: e.Routed) -> None:
        if topic := self.topics.get(entry.topic):
            topic.routed, topic.following, topic.routed_at = entry.offset, entry.following, entry.when

    def _retention(self, entry: e.Retention) -> None:
        if topic := self.topics.get(entry.topic):
            topic.retention_bytes, topic.retention_time = entry.bytes, entry.time

    def _replace_holes(self, entry: e.Holes) -> None:
        if topic := self.topics.get(entry.topic):
            topic.holes.replace(entry.first, entry.next, e.unpack_holes(entry.holes))

    # --- channels

    def _channel_created(self, entry: e.ChannelCreated) -> None:
        self.next_channel = max(self.next_channel, entry.channel + 1)
        if (topic := self.topics.get(entry.topic)) is None:
            return
        before = topic.channels.get(entry.name)
        if before is not None and before != entry.channel:
            self._channel_deleted(e.ChannelDeleted(before))
        if channel := self.channels.get(entry.channel):
            channel.since = entry.since
        else:
            self.channels[entry.channel] = ChannelState(entry.topic, entry.name, entry.cursor, entry.since)
            topic.channels[entry.name] = entry.channel

    def _channel_deleted(self, entry: e.ChannelDeleted) -> None:
        if channel := self.channels.pop(entry.channel, None):
            del self.topics[channel.topic].channels[channel.name]

    def _channel_paused(self, entry: e.ChannelPaused) -> None:
        if channel := self.channels.get(entry.channel):
            channel.paused = entry.paused

    def _emptied(self, entry: e.Emptied) -> None:
        if channel := self.channels.get(entry.channel):
            channel.cursor, channel.since = entry.cursor, entry.when
            channel.unfinished.clear()

    def _rewound(self, entry: e.Rewound) -> None:
        if channel := self.channels.get(entry.channel):
            channel.cursor = entry.cursor
            channel.unfinished.clear()

    def _progress(self, entry: e.Progress) -> None:
        if (channel := self.channels.get(entry.channel)) is None:
            return
        channel.unfinished.finish(entry.finished)
        if entry.start <= channel.cursor:
            channel.unfinished.remove(entry.start, channel.cursor)  # said before, and now anew
            channel.cursor = entry.cursor
        channel.unfinished.put(below(entry.unfinished, channel.cursor))

    def _page(self, entry: e.Page) -> None:
        if channel := self.channels.get(entry.channel):
            if entry.first <= channel.cursor:
                channel.cursor = max(channel.cursor, entry.next)
            channel.unfinished.remove(entry.first, entry.next)
            channel.unfinished.put(below(entry.unfinished, channel.cursor))

    # --- readers and producers

    def _reader_moved(self, entry: e.ReaderMoved) -> None:
        if entry.topic in self.topics:
            self.readers[entry.topic, entry.name] = entry

    def _reader_dropped(self, entry: e.ReaderDropped) -> None:
        self.readers.pop((entry.topic, entry.name), None)

    def _producer_seen(self, entry: e.ProducerSeen) -> None:
        if entry.topic in self.topics or entry.topic == e.NODE:
            self.producers[entry.topic, entry.key] = entry

    def _producer_dropped(self, entry: e.ProducerDropped) -> None:
        self.producers.pop((entry.topic, entry.key), None)

    def _complete(self, entry: e.Complete) -> None:
        pass

    # --- slices: the entries that say all this again

    def slices(self) -> Iterator[list[Entry]]:
        """Entries that make this state out of none; each list is a block's worth."""
        mark: Any = None
        while True:
            entries, mark = self.slice(mark)
            if entries:
                yield entries
            if mark is None:
                return

    def slice(self, mark: Any = None) -> Slice:
        """Entries that say from `mark` on how things are now, and the mark behind them: None when that was all.

        What is changed meanwhile is said by the entries of the change, before or behind the mark alike.
        """
        stage, place = mark or (0, None)
        entries, place = _STAGES[stage](self, place)
        if place is not None:
            return entries, (stage, place)
        return entries, (stage + 1, None) if stage + 1 < len(_STAGES) else None

    def _slice_topics(self, after: int | None) -> Slice:
        entries: list[Entry] = []
        numbers = _next(self.topics, after)
        for number in numbers:
            topic = self.topics[number]
            entries += (
                e.TopicCreated(number, topic.name, topic.incarnation),
                e.TopicPaused(number, topic.paused),
                e.Routed(number, topic.routed, topic.following, topic.routed_at),
                e.Retention(number, topic.retention_bytes, topic.retention_time),
            )
        return entries, _last(numbers)

    def _slice_readers(self, after: tuple[int, str] | None) -> Slice:
        keys = _next(self.readers, after)
        return [self.readers[key] for key in keys], _last(keys)

    def _slice_producers(self, after: tuple[int, bytes] | None) -> Slice:
        keys = _next(self.producers, after)
        return [self.producers[key] for key in keys], _last(keys)

    def _slice_holes(self, place: tuple[int, int] | None) -> Slice:
        number, at = place or (-1, 0)
        entries: list[Entry] = []
        room = LIMIT
        for each in sorted(each for each, topic in self.topics.items() if each >= number and topic.holes):
            if room <= 0:
                return entries, (each, 0)
            at = at if each == number else 0
            next_, holes = self.topics[each].holes.page(at, room)
            entries.append(e.Holes(each, at, next_, e.pack_holes(holes)))
            room -= len(holes)
            if next_ < e.END:
                return entries, (each, next_)
        return entries, None

    def _slice_channels(self, place: tuple[int, int] | None) -> Slice:
        """Each channel and, from its low-water mark to its cursor, what is unfinished."""
        number, at = place or (-1, 0)
        entries: list[Entry] = []
        room = LIMIT
        for each in sorted(each for each in self.channels if each >= number):
            if room <= 0:
                return entries, (each, _BEGIN)
            channel = self.channels[each]
            if each > number or at == _BEGIN:
                at = channel.unfinished.low if channel.unfinished else channel.cursor
                entries.append(e.ChannelCreated(each, channel.topic, channel.name, at, channel.since))
                entries.append(e.ChannelPaused(each, channel.paused))
                room -= LIMIT // THINGS
            if at < channel.cursor:
                next_, packed = channel.unfinished.page(at, max(1, room))
                stop = min(next_, channel.cursor)
                entries.append(e.Page(each, at, stop, packed))
                room -= len(packed) // e.MESSAGE.size
                if stop < channel.cursor:
                    return entries, (each, stop)
        return entries, None


def _next(things: dict[Any, Any], after: Any) -> list[Any]:
    """The next keys in order."""
    return nsmallest(THINGS, things if after is None else (key for key in things if key > after))


def _last(keys: list[Any]) -> Any:
    return keys[-1] if len(keys) == THINGS else None


_STAGES: Final[list[Callable[[NodeState, Any], Slice]]] = [
    NodeState._slice_topics,
    NodeState._slice_holes,
    NodeState._slice_readers,
    NodeState._slice_producers,
    NodeState._slice_channels,
]

_FOLDS: Final[dict[type[Any], Callable[[NodeState, Any], None]]] = {
    e.TopicCreated: NodeState._topic_created,
    e.TopicDeleted: NodeState._topic_deleted,
    e.TopicPaused: NodeState._topic_paused,
    e.Routed: NodeState._routed,
    e.Retention: NodeState._retention,
    e.Holes: NodeState._replace_holes,
    e.ChannelCreated: NodeState._channel_created,
    e.ChannelDeleted: NodeState._channel_deleted,
    e.ChannelPaused: NodeState._channel_paused,
    e.Emptied: NodeState._emptied,
    e.Rewound: NodeState._rewound,
    e.Progress: NodeState._progress,
    e.Page: NodeState._page,
    e.ReaderMoved: NodeState._reader_moved,
    e.ReaderDropped: NodeState._reader_dropped,
    e.ProducerSeen: NodeState._producer_seen,
    e.ProducerDropped: NodeState._producer_dropped,
    e.Complete: NodeState._complete,
}
