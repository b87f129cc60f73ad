"""An original nsqd's data folder becomes a data path: every message once, every channel where it stood.

    offsets    [0, R)      what channels have been given and have not all finished, by (timestamp, id)
               [R, end)    what the topic has given to no channel, in its own order

Messages get new ids and keep their timestamps; a channel keeps its attempts. Nothing in the folder is changed. The data
path is built aside, flushed, read again and counted before it takes its place.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from penstock.errors import ImportFailed
from penstock.log.data_path import JOURNAL, NODE
from penstock.log.entries import ChannelCreated, ChannelPaused, Progress, Routed, TopicCreated, TopicPaused
from penstock.log.files import Files
from penstock.log.journal import Journal
from penstock.log.original import Folder
from penstock.log.transfer.counting import count
from penstock.log.transfer.opened import opened
from penstock.log.transfer.paths import refuse_inside
from penstock.log.transfer.placing import Placing
from penstock.log.transfer.summary import ChannelCount, Summary, TopicCount, silence
from penstock.log.transfer.target import Target
from penstock.log.transfer.writing import JournalWriter, LogWriter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.log.data_path import DataPath
    from penstock.log.original import Channel, Topic
    from penstock.log.topic_log import LogOptions
    from penstock.log.transfer.summary import Progress as Listener


def import_folder(
    folder: str,
    data_path: str,
    *,
    now: int,
    files: Files | None = None,
    options: LogOptions | None = None,
    boot: str | None = None,
    progress: Listener = silence,
) -> Summary:
    """Make `data_path`, which must be new or empty, from the folder of an nsqd that is stopped; all or nothing."""
    files = files or Files()
    _check_paths(files, folder, data_path)
    with Folder(files, folder) as source, Target(files, data_path) as target:
        with opened(files, target.building, boot, options) as building:
            made = _build(source, building, now, progress)
        with opened(files, target.building, boot, options) as built:
            _compare(made, count(built))
        notes = [*map(str, source.findings), *_twice(source, made)]
        target.publish()
        return Summary(made, notes)


def _check_paths(files: Files, folder: str, data_path: str) -> None:
    if files.exists(f"{folder}/{NODE}"):
        raise ImportFailed(f"{folder} is a data path of Penstock already")
    refuse_inside(data_path, folder)


def _build(source: Folder, target: DataPath, now: int, progress: Listener) -> dict[str, TopicCount]:
    """Write everything; what was written."""
    building = _Building(target, now, progress)
    for number, topic in enumerate(source.topics.values()):
        building.add(number, topic)
    building.journal.finish()
    return building.made


class _Building:
    """Topics, one after the other."""

    def __init__(self, target: DataPath, now: int, progress: Listener) -> None:
        self.made: dict[str, TopicCount] = {}
        self.journal = JournalWriter(Journal(target.disk, f"{target.path}/{JOURNAL}"), now)
        self._target = target
        self._now = now
        self._progress = progress
        self._channels = 0
        self._messages = 0

    def add(self, number: int, topic: Topic) -> None:
        """Make the topic, its log and its channels."""
        self._progress(f"{topic.name}: sorting", self._messages)
        log = self._target.create(topic.name)
        self.journal.add(TopicCreated(number, topic.name, log.birth.incarnation), TopicPaused(number, topic.paused))
        made = self.made[topic.name] = TopicCount(paused=topic.paused)
        placings = {channel.name: self._add_channel(number, channel) for channel in topic.channels.values()}
        writer = LogWriter(log, self._now)
        with closing(topic.unfinished(f"{self._target.path}/sorting")) as unfinished:
            for message in unfinished:
                for channel, attempts in message.attempts.items():
                    placings[channel].add(writer.written, attempts)
                self._write(writer, message.timestamp, message.body, topic)
        routed = writer.written
        for channel, placing in placings.items():
            placing.finish(routed)
            made.channels[channel] = ChannelCount(placing.messages, placing.attempts, topic.channels[channel].paused)
        self.journal.add(Routed(number, routed, bool(placings) and not topic.paused, self._now))
        with closing(topic.unrouted()) as unrouted:
            for waiting in unrouted:
                self._write(writer, waiting.timestamp, waiting.body, topic)
        writer.finish()
        made.messages, made.waiting = writer.written, writer.written - routed
        self._messages += writer.written

    def _add_channel(self, topic: int, channel: Channel) -> Placing:
        number = self._channels
        self._channels += 1
        self.journal.add(
            ChannelCreated(number, topic, channel.name, 0, self._now), ChannelPaused(number, channel.paused)
        )
        return Placing(number, self._add_progress)

    def _add_progress(self, entry: Progress) -> None:
        self.journal.add(entry)

    def _write(self, writer: LogWriter, timestamp: int, body: bytes, topic: Topic) -> None:
        if writer.put(timestamp, body):
            self._progress(topic.name, self._messages + writer.written)


def _compare(made: dict[str, TopicCount], found: dict[str, TopicCount]) -> None:
    if made.keys() != found.keys():
        raise ImportFailed(f"written were the topics {sorted(made)}, but there are {sorted(found)}")
    for name, topic in made.items():
        if found[name] != topic:
            raise ImportFailed(f"{name} does not read back as it was written: {topic} became {found[name]}")


def _twice(source: Folder, made: dict[str, TopicCount]) -> Iterator[str]:
    """Hold the messages against the records that were read, by number, and tell what makes a difference."""
    for topic in source.topics.values():
        records = topic.queue.records if topic.queue else 0
        if made[topic.name].waiting != records:
            raise ImportFailed(f"{topic.name}: {records} records became {made[topic.name].waiting} messages")
        for channel in topic.channels.values():
            more = sum(queue.records for queue in channel.queues) - made[topic.name].channels[channel.name].messages
            if more:
                yield f"{topic.name}:{channel.name}: there twice, or in the topic's queue as well: {more}"
