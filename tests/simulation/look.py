"""What a node holds, read from its own structures: every message by its body, and in which state it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.broker.slots import DELAYED, IN_FLIGHT
from penstock.log.memory_log import MemoryLog
from penstock.log.topic_log import BLOCK
from penstock.protocol.batch import records

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.broker.channel import Channel
    from penstock.nsqd.home import Home
    from penstock.nsqd.node import Node

END = 1 << 63
FLIGHT, READY, WAITS = "in flight", "ready", "delayed"


@dataclass
class Seen:
    """One unfinished message of a channel."""

    state: str
    attempts: int
    until: int


@dataclass
class SeenChannel:
    paused: bool
    since: int
    pending: dict[bytes, Seen] = field(default_factory=dict)
    others: set[bytes] = field(default_factory=set)


@dataclass
class SeenTopic:
    incarnation: str
    base: int
    earliest: int  # what lies below was consumed, and may be deleted
    begin: int  # of its files
    paused: bool
    records: dict[int, bytes]
    waiting: dict[int, bytes]
    deferred: list[bytes]
    times: dict[bytes, int]  # of publish
    channels: dict[str, SeenChannel]
    readers: dict[str, int]
    retention: tuple[int, int]
    damaged: set[int]  # what a cut took from the midst of a file, and nobody had come across


def look(node: Node) -> dict[str, SeenTopic]:
    return {name: _topic(home) for name, home in node.homes.items()}


def records_from(home: Home, offset: int) -> Iterator[tuple[int, bytes, int, int]]:
    """(offset, body, id, timestamp) of what is committed from there on."""
    while (block := home.log.read(offset)) is not None:
        for record in records(block.data):
            if offset <= record.offset < home.log.committed:
                yield record.offset, record.body, int(record.id, 16), record.timestamp
        offset = block.next


def _found(home: Home) -> Iterator[tuple[int, bytes, int]]:
    """(offset, body, timestamp) of all that a start found, committed or not yet."""
    log = home.log
    for read in (log.read,) if isinstance(log, MemoryLog) else (log.chain.read, log.held.read):
        offset = 0
        while (block := read(offset, BLOCK)) is not None:
            for record in records(block.data):
                yield record.offset, record.body, record.timestamp
            offset = block.next


def _topic(home: Home) -> SeenTopic:
    topic = home.topic
    found = list(_found(home))
    there = {offset: body for offset, body, _ in found if topic.count(offset, offset + 1)}
    deferred = _deferred(home)
    return SeenTopic(
        home.log.birth.incarnation,
        home.base,
        0 if isinstance(home.log, MemoryLog) else home.log.earliest,
        0 if isinstance(home.log, MemoryLog) else home.log.chain.first(home.log.end),
        topic.paused,
        there,
        {offset: body for offset, body in there.items() if offset >= topic.routed},
        [body for body, _ in deferred],
        {body: time for _, body, time in found} | dict(deferred),
        {name: _channel(channel, there) for name, channel in topic.channels.items()},
        {reader.name: reader.offset for reader in topic.readers.values()},
        (home.retention.bytes, home.retention.time),
        _damaged(home, there),
    )


def _damaged(home: Home, there: dict[int, bytes]) -> set[int]:
    if isinstance(home.log, MemoryLog):
        return set()
    offsets = (offset for segment in home.log.chain.segments for offset in range(segment.first, segment.end))
    return {offset for offset in offsets if offset not in there and home.topic.holds(offset)}


def _deferred(home: Home) -> list[tuple[bytes, int]]:
    if isinstance(home.log, MemoryLog):
        return [(body, time) for _, _, time, body in home.log._deferred]
    return [(entry.body, entry.timestamp) for entry in home.log.timetable.entries(1 << 30)]


def _channel(channel: Channel, there: dict[int, bytes]) -> SeenChannel:
    seen = SeenChannel(channel.paused, channel.since)
    for offset, state, attempts, until in channel.unfinished.slots.messages(0, END):
        name = FLIGHT if state == IN_FLIGHT else WAITS if state == DELAYED else READY
        assert offset < channel.cursor, "unfinished above the cursor"
        if offset in there:
            seen.pending[there[offset]] = Seen(name, attempts, until)
    for offset, body in there.items():
        if channel.cursor <= offset < channel.limit:
            seen.pending[body] = Seen(READY, 0, 0)
    return seen
