"""What an import has written, read back from its files as a start finds them: of each topic, of each channel."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from penstock.errors import CorruptLog
from penstock.log import entries as e
from penstock.log.data_path import JOURNAL
from penstock.log.journal import Journal
from penstock.log.transfer.summary import ChannelCount, TopicCount
from penstock.protocol.batch import positions, record

if TYPE_CHECKING:
    from penstock.log.data_path import DataPath
    from penstock.log.topic_log import TopicLog

BLOCK: Final = 1 << 20


def count(data_path: DataPath) -> dict[str, TopicCount]:
    """What each topic and each of its channels has to deliver; every CRC is checked on the way."""
    tally = _Tally(Journal(data_path.disk, f"{data_path.path}/{JOURNAL}").replay())
    counts = {}
    for log in data_path.logs:
        counts[log.birth.name] = tally.of(log.birth.incarnation, _records(log))
        log.close_files()
        log.relax()
    return counts


def _records(log: TopicLog) -> int:
    """How many records there are, none missing between them, and each block with the ids that its offsets say."""
    offset = 0
    while offset < log.end:
        block = log.read(offset, BLOCK)
        if block is None or block.first != offset:
            raise CorruptLog(f"{log.directory} holds nothing at offset {offset}")
        places = positions(block.data, 0, len(block.data))
        for number in (0, len(places) - 1):
            if record(block.data, places[number], 0).id != b"%016x" % (log.birth.base + offset + number):
                raise CorruptLog(f"{log.directory} has another message at offset {offset + number}")
        offset += len(places)
    return offset


class _Tally:
    """Adds up a journal whose channels only ever went on, with no message in memory."""

    def __init__(self, entries: Iterable[e.Entry]) -> None:
        self._topics: dict[int, TopicCount] = {}
        self._numbers: dict[str, int] = {}  # by incarnation
        self._routed: dict[int, int] = {}
        self._channels: dict[int, ChannelCount] = {}
        self._cursors: dict[int, int] = {}
        self._of: dict[int, list[int]] = {}  # a topic's channels
        try:
            for entry in entries:
                self._add(entry)
        except KeyError as error:
            raise CorruptLog("the journal lacks what made a topic or a channel") from error

    def of(self, incarnation: str, records: int) -> TopicCount:
        """The topic, whose log has so many records."""
        number = self._numbers.get(incarnation)
        if number is None or number not in self._routed:
            raise CorruptLog(f"the journal does not know the topic's life {incarnation}")
        topic = self._topics[number]
        topic.messages, topic.waiting = records, records - self._routed[number]
        for channel in self._of[number]:
            self._channels[channel].messages += self._routed[number] - self._cursors[channel]
        return topic

    def _add(self, entry: e.Entry) -> None:
        match entry:
            case e.TopicCreated():
                self._topics[entry.topic], self._of[entry.topic] = TopicCount(), []
                self._numbers[entry.incarnation] = entry.topic
            case e.TopicPaused():
                self._topics[entry.topic].paused = entry.paused
            case e.Routed():
                self._routed[entry.topic] = entry.offset
            case e.ChannelCreated():
                counted = self._topics[entry.topic].channels[entry.name] = ChannelCount()
                self._channels[entry.channel], self._cursors[entry.channel] = counted, entry.cursor
                self._of[entry.topic].append(entry.channel)
            case e.ChannelPaused():
                self._channels[entry.channel].paused = entry.paused
            case e.Progress():
                self._progress(entry)

    def _progress(self, entry: e.Progress) -> None:
        at = self._cursors[entry.channel]
        if entry.start != at:
            raise CorruptLog(f"the journal lacks what channel {entry.channel} did before offset {entry.start}")
        counted = self._channels[entry.channel]
        for offset, attempts, _ in e.unpack_messages(entry.unfinished):
            if not at <= offset < entry.cursor:
                raise CorruptLog(f"the journal has offset {offset} of channel {entry.channel} in a wrong place")
            at = offset + 1
            counted.messages += 1
            counted.attempts += attempts
        self._cursors[entry.channel] = entry.cursor
