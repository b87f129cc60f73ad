"""The data folder of the original nsqd, read and written. Knows its files; knows nothing of our topics."""

from penstock.log.original.findings import Finding, Findings, Kind
from penstock.log.original.folder import Channel, Folder, Topic
from penstock.log.original.merge import Unfinished
from penstock.log.original.queue import Message, Queue
from penstock.log.original.queue_writer import QueueWriter
from penstock.log.original.writer import MAX_BYTES_PER_FILE, FolderWriter

__all__ = [
    "MAX_BYTES_PER_FILE",
    "Channel",
    "Finding",
    "Findings",
    "Folder",
    "FolderWriter",
    "Kind",
    "Message",
    "Queue",
    "QueueWriter",
    "Topic",
    "Unfinished",
]
