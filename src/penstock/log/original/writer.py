"""Writing a data folder that the original nsqd starts from. Knows its files; knows nothing of our topics.

nsqd.dat is written last: without it nsqd starts empty, so that a folder written in part is never taken for a whole one.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from penstock.errors import DataPathError, log_error
from penstock.log.files import replace
from penstock.log.original.metadata import ChannelEntry, Metadata, TopicEntry, encode
from penstock.log.original.names import METADATA, QueueName
from penstock.log.original.queue_writer import QueueWriter
from penstock.protocol.names import is_ephemeral, is_valid

if TYPE_CHECKING:
    from types import TracebackType

    from penstock.log.files import Files

MAX_BYTES_PER_FILE: Final = 100 << 20  # nsqd's default
VERSION: Final = "1.3.0"  # of the nsqd whose format this is

_IGNORED: Final = {"lost+found"}  # on the root of a file system


class FolderWriter:
    """Makes `path` such a folder, or takes everything away again: use it with `with`, and `finish` it inside.

    The folder must be new or empty, and nsqd cannot start on it meanwhile. Each topic is named before its channels.
    """

    def __init__(self, files: Files, path: str, *, max_bytes_per_file: int = MAX_BYTES_PER_FILE) -> None:
        self.path = path
        self._files = files
        self._max_bytes = max_bytes_per_file
        self._queues: dict[QueueName, QueueWriter] = {}
        self._paused: set[QueueName] = set()
        self._finished = False
        self._made = False
        try:
            self._lock = self._own_folder()
        except OSError as error:
            raise log_error(error, f"making {path}") from error

    def topic(self, name: str, *, paused: bool = False) -> QueueWriter:
        """The queue of what the topic has handed to no channel."""
        return self._queue(QueueName(name, None), paused)

    def channel(self, topic: str, name: str, *, paused: bool = False) -> QueueWriter:
        """The queue of what the channel has not finished; nsqd delivers it in the order it was put."""
        if QueueName(topic, None) not in self._queues:
            raise ValueError(f"no topic {topic}")
        return self._queue(QueueName(topic, name), paused)

    @property
    def largest(self) -> int:
        """Bytes of the largest body: nsqd sets aside the file of one that its `--max-msg-size` does not allow."""
        return max((queue.largest for queue in self._queues.values()), default=0)

    def finish(self) -> None:
        """Everything is on the device when this returns, and nsqd may start on it."""
        for queue in self._queues.values():
            queue.finish()
        try:
            self._files.flush_directory(self.path)
            replace(self._files, os.path.join(self.path, METADATA), encode(self._metadata()))
            if self._made:
                self._files.flush_directory(os.path.dirname(os.path.abspath(self.path)))
        except OSError as error:
            raise log_error(error, f"writing {self.path}") from error
        self._finished = True
        self._unlock()

    def __enter__(self) -> FolderWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._finished:
            self._remove()
        self._unlock()

    def _own_folder(self) -> int:
        """The lock of the folder, which is made where it is missing."""
        if not self._files.exists(self.path):
            self._files.make_directory(self.path)
            self._made = True
        lock = self._files.lock_directory(self.path)
        try:
            if any(name not in _IGNORED for name, _ in self._files.list(self.path)):
                raise DataPathError(f"{self.path} is not empty")
        except BaseException:
            self._files.close(lock)
            raise
        return lock

    def _queue(self, name: QueueName, paused: bool) -> QueueWriter:
        for part in name:
            if part is not None and (not is_valid(part) or is_ephemeral(part)):
                raise ValueError(f"nsqd keeps no queue of {part!r}")
        if name in self._queues:
            raise ValueError(f"{name} twice")
        if paused:
            self._paused.add(name)
        queue = self._queues[name] = QueueWriter(self._files, self.path, str(name), self._max_bytes)
        return queue

    def _metadata(self) -> Metadata:
        channels: dict[str, list[ChannelEntry]] = {}
        for name in self._queues:
            of_topic = channels.setdefault(name.topic, [])
            if name.channel is not None:
                of_topic.append(ChannelEntry(name.channel, name in self._paused))
        return Metadata(
            VERSION,
            tuple(
                TopicEntry(topic, QueueName(topic, None) in self._paused, tuple(of_topic))
                for topic, of_topic in channels.items()
            ),
        )

    def _remove(self) -> None:
        """Leave the folder as it was found, as far as that can be done; nsqd.dat goes first."""
        for name in (METADATA, f"{METADATA}.partial"):
            with suppress(OSError):
                self._files.unlink(os.path.join(self.path, name))
        for queue in self._queues.values():
            queue.remove()
        if self._made:
            with suppress(OSError):
                self._files.remove_directory(self.path)

    def _unlock(self) -> None:
        if self._lock >= 0:
            self._files.close(self._lock)
            self._lock = -1
