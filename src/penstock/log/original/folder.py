"""A data folder of the original nsqd, opened for reading: its topics, their channels, their messages.

    nsqd.dat                                       the list of topics and channels, and which are paused
    <topic>.diskqueue.*                            what the topic has not handed to its channels
    <topic>:<channel>.diskqueue.*                  what the channel has not finished

Nothing in it is written. While it is open, nsqd cannot start on it, and it cannot be opened while nsqd runs.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.errors import DataPathError, ImportFailed, log_error
from penstock.log.files import read_whole
from penstock.log.original import metadata
from penstock.log.original.findings import Finding, Findings, Kind
from penstock.log.original.merge import Unfinished, merge
from penstock.log.original.meta import Meta
from penstock.log.original.meta import parse as parse_meta
from penstock.log.original.names import METADATA, is_old_metadata, meta_name, parse_file, parse_queue
from penstock.log.original.queue import Message, Queue
from penstock.protocol.names import is_ephemeral, is_valid

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import TracebackType

    from penstock.log.files import Files


@dataclass(slots=True)
class Channel:
    """A channel; it has two queues only where folders of two systems were put together."""

    name: str
    paused: bool = False
    queues: list[Queue] = field(default_factory=list)


@dataclass(slots=True)
class Topic:
    """A topic with what it has not handed out, and its channels by name."""

    name: str
    files: Files
    paused: bool = False
    queue: Queue | None = None
    channels: dict[str, Channel] = field(default_factory=dict)

    def unfinished(self, scratch: str) -> Generator[Unfinished, None, None]:
        """What channels were given and have not finished: each message once, by (timestamp, id), in flat memory.

        With very many, those whose place among the others says least of who holds them come first: see ranks.py.
        `scratch` begins the names of files that exist while this runs, of 48 bytes for each record, or twice that.
        After a kill the topic's queue may hold again what it has handed out: that is left out here.
        """
        queues = [(channel.name, queue) for channel in self.channels.values() for queue in channel.queues]
        return merge(self.files, queues, self.queue, scratch)

    def unrouted(self) -> Generator[Message, None, None]:
        """What all channels still have to get, in the topic's own order."""
        if self.queue:
            yield from self.queue.messages()


class Folder:
    """The topics of an original folder by name; `findings` grows while queues are read."""

    def __init__(self, files: Files, path: str) -> None:
        """Lock the folder and read its lists; ImportFailed where nsqd has left nothing there."""
        self.path = path
        self.version = ""
        self.topics: dict[str, Topic] = {}
        self.findings: Findings = {}
        self._files = files
        self._lock = self._locked()
        try:
            self._read()
        except OSError as error:
            self.close()
            raise log_error(error, f"reading {path}") from error
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Folder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let nsqd start on it again."""
        if self._lock >= 0:
            self._files.close(self._lock)
            self._lock = -1

    def _locked(self) -> int:
        try:
            return self._files.lock_directory(self.path)
        except BlockingIOError as error:
            raise DataPathError(f"{self.path} is in use: stop the nsqd that runs on it") from error
        except OSError as error:
            raise log_error(error, f"locking {self.path}") from error

    def _read(self) -> None:
        names = sorted(name for name, is_directory in self._files.list(self.path) if not is_directory)
        numbers, metas = self._queue_files(names)
        listed = self._list_name(names)
        if listed is None and not numbers:
            raise ImportFailed(f"{self.path} holds neither nsqd.dat nor queues of nsqd")
        self._add_listed(listed)
        for name in sorted({*numbers, *metas}):
            queue = Queue(self._files, self.path, name, numbers.get(name, []), self._meta(name, metas), self.findings)
            if name in numbers or queue.depth:  # an idle queue leaves a meta file, also of a topic that was deleted
                self._add_queue(queue)
        self.topics = dict(sorted(self.topics.items()))

    def _queue_files(self, names: list[str]) -> tuple[dict[str, list[int]], set[str]]:
        """The numbers of each queue's data files, and which queues have a meta file."""
        numbers: dict[str, list[int]] = {}
        metas: set[str] = set()
        for name in names:
            file = parse_file(name)
            if file is None:
                continue
            owner = parse_queue(file.queue)
            if owner is None:
                self._tell(Kind.FOREIGN, name)
            elif is_ephemeral(owner.topic) or is_ephemeral(owner.channel or ""):
                self._tell(Kind.EPHEMERAL, name)
            elif file.bad:
                self._tell(Kind.SET_ASIDE, name)
            elif file.number is None:
                metas.add(file.queue)
            else:
                numbers.setdefault(file.queue, []).append(file.number)
        return numbers, metas

    # --- the list of topics and channels

    def _list_name(self, names: list[str]) -> str | None:
        """nsqd.dat, or under what name an older nsqd kept it."""
        if METADATA in names:
            return METADATA
        old = [name for name in names if is_old_metadata(name)]
        return old[0] if len(old) == 1 else None

    def _add_listed(self, name: str | None) -> None:
        if name is None:
            self._tell(Kind.NO_METADATA, METADATA)
            return
        listed = metadata.parse(read_whole(self._files, os.path.join(self.path, name)))
        if listed is None:
            self._tell(Kind.BAD_METADATA, name)
            return
        self.version = listed.version
        for entry in listed.topics:
            if self._usable(entry.name):
                self._add_entry(entry)

    def _add_entry(self, entry: metadata.TopicEntry) -> None:
        topic = self._topic(entry.name)
        topic.paused |= entry.paused
        for channel in entry.channels:
            if self._usable(channel.name):
                topic.channels.setdefault(channel.name, Channel(channel.name)).paused |= channel.paused

    def _usable(self, name: str) -> bool:
        if not is_valid(name):
            self._tell(Kind.BAD_NAME, repr(name))
            return False
        if is_ephemeral(name):
            self._tell(Kind.EPHEMERAL_NAME, name)
            return False
        return True

    def _topic(self, name: str) -> Topic:
        return self.topics.setdefault(name, Topic(name, self._files))

    # --- queues

    def _meta(self, queue: str, metas: set[str]) -> Meta | None:
        if queue not in metas:
            self._tell(Kind.NO_META, meta_name(queue))
            return None
        meta = parse_meta(read_whole(self._files, os.path.join(self.path, meta_name(queue))))
        if meta is None:
            self._tell(Kind.BAD_META, meta_name(queue))
        return meta

    def _add_queue(self, queue: Queue) -> None:
        owner = parse_queue(queue.name)
        if owner is None:
            return
        listed = self.topics.get(owner.topic)
        if listed is None or (owner.channel is not None and owner.channel not in listed.channels):
            self._tell(Kind.UNLISTED, queue.name)
        topic = self._topic(owner.topic)
        if owner.channel is None:
            topic.queue = queue
        else:
            topic.channels.setdefault(owner.channel, Channel(owner.channel)).queues.append(queue)

    def _tell(self, kind: Kind, file: str) -> None:
        self.findings[Finding(kind, file)] = None
