"""A data path becomes a folder that the original nsqd starts from: what is not finished, and who has to get it.

    a channel's queue    its unfinished messages, then all from its cursor to R, then what is deferred for it
    the topic's queue    all from R on; and what is deferred, where R stands still

Messages keep their ids, timestamps and attempts. What the original cannot hold is told: deferred and delayed messages
are written as due; readers, ephemeral channels and what is only retained are left out. The data path is opened as at a
start, with recovery where it was not closed, and left as it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.errors import DataPathError
from penstock.log.data_path import JOURNAL, NODE
from penstock.log.files import Files
from penstock.log.journal import Journal
from penstock.log.original import MAX_BYTES_PER_FILE, FolderWriter
from penstock.log.state import NodeState, TopicState
from penstock.log.transfer.opened import opened_to_read
from penstock.log.transfer.paths import refuse_inside
from penstock.log.transfer.queues import TopicQueues
from penstock.log.transfer.summary import Summary, silence

if TYPE_CHECKING:
    from penstock.log.data_path import DataPath
    from penstock.log.topic_log import TopicLog
    from penstock.log.transfer.summary import Progress

LARGEST: Final = 1 << 20  # bytes: what nsqd takes of a message unless it is told otherwise


def export_folder(
    data_path: str,
    folder: str,
    *,
    files: Files | None = None,
    boot: str | None = None,
    max_bytes_per_file: int = MAX_BYTES_PER_FILE,
    progress: Progress = silence,
) -> Summary:
    """Make `folder`, which must be new or empty, from the data path of a node that is stopped; all or nothing."""
    files = files or Files()
    if not files.exists(f"{data_path}/{NODE}"):
        raise DataPathError(f"{data_path} is no data path of Penstock")
    refuse_inside(folder, data_path)
    with opened_to_read(files, data_path, boot) as node:
        exporting = _Exporting(node, progress)
        with FolderWriter(files, folder, max_bytes_per_file=max_bytes_per_file) as target:
            for log in sorted(node.logs, key=lambda log: log.birth.folder):
                exporting.write(log, target)
            target.finish()
        exporting.tell_the_rest(target.largest)
        return exporting.summary


class _Exporting:
    """Topics, one after the other."""

    def __init__(self, node: DataPath, progress: Progress) -> None:
        self.summary = Summary()
        self._node = node
        self._state = NodeState()
        if node.disk.files.exists(f"{node.path}/{JOURNAL}"):
            self._state.apply_all(Journal(node.disk, f"{node.path}/{JOURNAL}").replay())
        self._progress = progress

    def write(self, log: TopicLog, target: FolderWriter) -> None:
        """One topic, with its channels."""
        state = self._state_of(log)
        if state is None:
            return
        before = self.summary.messages
        channels = [self._state.channels[number] for _, number in sorted(state.channels.items())]
        queues = TopicQueues(log, state, channels, lambda count: self._progress(state.name, before + count))
        queues.write(target)
        self.summary.topics[state.name] = queues.count
        self.summary.notes += queues.notes
        log.close_files()

    def _state_of(self, log: TopicLog) -> TopicState | None:
        """What the journal says of the topic; without a word of it, it was deleted, unless the journal is lost."""
        name, incarnation = log.birth.name, log.birth.incarnation
        state = self._state.topic(name)
        if state is not None and state.incarnation == incarnation:
            return state
        if state is not None or (self._state.topics and not self._journal_damaged()):
            if log.end > log.earliest:
                self._note(f"{log.directory} is of a topic that was deleted: left out")
            return None
        self._note(f"{name}: the journal does not know it: all that is there is written as given to no channel")
        return TopicState(name, incarnation, routed=log.earliest)

    def _journal_damaged(self) -> bool:
        return any(damage.path.startswith(f"{self._node.path}/{JOURNAL}/") for damage in self._node.disk.damages)

    def tell_the_rest(self, largest: int) -> None:
        """What is of no single topic, or could be met anywhere."""
        for (topic, name), reader in sorted(self._state.readers.items()):
            self._note(f"{self._state.topics[topic].name}: the reader {name}, at offset {reader.offset}, is left out")
        for damage in self._node.disk.damages:
            self._note(f"{damage.path}: {damage.size} bytes at {damage.position} are damaged, and left out")
        if largest > LARGEST:
            self._note(f"the largest message has {largest} bytes: nsqd needs --max-msg-size to be as large")

    def _note(self, text: str) -> None:
        self.summary.notes.append(text)
