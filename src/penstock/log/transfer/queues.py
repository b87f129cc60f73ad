"""One topic of a data path, written as the queues of the original. Knows a log and its journalled state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.log.birth import JUMP
from penstock.log.entries import READY
from penstock.log.transfer.contents import picked, stretch
from penstock.log.transfer.summary import ChannelCount, TopicCount
from penstock.protocol.batch import record
from penstock.protocol.names import is_ephemeral

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.log.chain import Hole
    from penstock.log.original import FolderWriter, QueueWriter
    from penstock.log.state import ChannelState, TopicState
    from penstock.log.topic_log import TopicLog
    from penstock.protocol.batch import Record


class TopicQueues:
    """Writes the queues; `count` and `notes` tell what became of it."""

    def __init__(self, log: TopicLog, state: TopicState, channels: list[ChannelState], report: Callable[[int], None]):
        self.count = TopicCount(paused=state.paused)
        self.notes: dict[str, None] = {}  # each once
        self._log = log
        self._state = state
        self._channels = [channel for channel in channels if not is_ephemeral(channel.name)]
        self._report = report
        self._routed = log.committed if state.following else min(state.routed, log.committed)
        self._follows = state.following and bool(self._channels)
        for channel in channels:
            if is_ephemeral(channel.name):
                self._note(f"{channel.name} is ephemeral: left out")

    def write(self, target: FolderWriter) -> None:
        queue = target.topic(self._state.name, paused=self._state.paused)
        for channel in self._channels:
            self._write_channel(channel, target.channel(self._state.name, channel.name, paused=channel.paused))
        self._copy(queue, self._routed, self._log.committed)
        if not self._follows:
            self._write_deferred(queue, lambda _timestamp: True)
        queue.finish()
        self.count.waiting = queue.count
        self._count_deferred()

    def _note(self, text: str) -> None:
        self.notes[f"{self._state.name}: {text}"] = None

    # --- a channel

    def _write_channel(self, channel: ChannelState, queue: QueueWriter) -> None:
        count = self.count.channels[channel.name] = ChannelCount(paused=channel.paused)
        self._write_unfinished(channel, queue, count)
        self._copy(queue, channel.cursor, self._routed)
        if self._follows:
            self._write_deferred(queue, lambda timestamp: self._gets(channel, timestamp))
        queue.finish()
        count.messages = queue.count

    def _write_unfinished(self, channel: ChannelState, queue: QueueWriter, count: ChannelCount) -> None:
        lost = delayed = 0
        for found in picked(self._log, channel.unfinished):
            if found is None:
                lost += 1
                continue
            (_, attempts, due), (_, timestamp, _, id_, body) = found
            queue.put(timestamp, id_, attempts, body)
            count.attempts += attempts
            delayed += due > READY
            self._written(1)
        if delayed:
            self._note(f"requeued with a delay by {channel.name}, and written as due: {delayed}")
        if lost:
            self._note(f"not finished by {channel.name}, and in the log no more: {lost}")

    # --- records

    def _copy(self, queue: QueueWriter, first: int, end: int) -> None:
        """All of `[first, end)` that is there."""
        for data, places in stretch(self._log, first, end, self._state.holes):
            queue.put_records(data, places)
            self._written(len(places))
        for hole in self._log.holes(first, end):
            self._note_hole(hole)

    def _note_hole(self, hole: Hole) -> None:
        first, last = hole.first, hole.next - 1
        if hole.next - first >= JUMP:
            self._note(f"went on after a power cut or damage: what there may have been from offset {first} on is lost")
        elif first == last:
            self._note(f"there is nothing at offset {first}: {hole.why}")
        else:
            self._note(f"there is nothing from offset {first} to {last}: {hole.why}")

    def _written(self, count: int) -> None:
        self.count.messages += count
        self._report(self.count.messages)

    # --- what is deferred

    def _write_deferred(self, queue: QueueWriter, wanted: Callable[[int], bool]) -> None:
        for id_, found in self._deferred():
            if wanted(found.timestamp):
                queue.put(found.timestamp, id_, 0, found.body)
                self._written(1)

    def _deferred(self) -> Iterator[tuple[bytes, Record]]:
        """Each with an id that no record of the log has."""
        id_value = self._log.birth.base + self._log.end
        for data, places in self._log.timetable.scan():
            for at in places:
                yield b"%016x" % id_value, record(data, at, 0)
                id_value += 1

    def _gets(self, channel: ChannelState, published: int) -> bool:
        """Whether the message is for this channel: it was there, or was the first to come."""
        return channel.since <= published

    def _count_deferred(self) -> None:
        count = nobodys = 0
        for _, found in self._deferred():
            count += 1
            nobodys += self._follows and not any(self._gets(channel, found.timestamp) for channel in self._channels)
        if count:
            self._note(f"deferred, and written as due: {count}")
        if nobodys:
            self._note(f"of them for no channel, all being made or emptied after the publish: {nobodys}")
