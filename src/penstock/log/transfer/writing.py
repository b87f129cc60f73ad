"""Writing a new topic's log and a new journal in one go, with little in memory and little unflushed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.log.entries import Entry, Progress
from penstock.log.original.records import HEAD, SMALLEST
from penstock.protocol.batch import RECORD

if TYPE_CHECKING:
    from penstock.log.journal import Journal
    from penstock.log.topic_log import TopicLog

BATCH: Final = 64 << 10  # bytes: as much is read to get at one message
FLUSH: Final = 64 << 20  # bytes
BLOCK: Final = 256 << 10  # bytes of the journal
_ENTRY: Final = 64  # bytes of an entry without messages, about


class LogWriter:
    """Appends messages with timestamps of their own; `written` counts them."""

    def __init__(self, log: TopicLog, now: int) -> None:
        self.written = 0
        self._log = log
        self._now = now
        self._id = log.birth.base + log.end
        self._parts: list[bytes] = []
        self._size = 0
        self._unflushed = 0

    def put(self, timestamp: int, body: bytes) -> bool:
        """Add one message; whether a batch was written before it."""
        size = RECORD + len(body)
        full = self._size + size > BATCH and self._size > 0
        if full:
            self._write()
        self._parts += (HEAD.pack(SMALLEST + len(body), timestamp, 0, b"%016x" % self._id), body)
        self._size += size
        self._id += 1
        self.written += 1
        return full

    def finish(self) -> None:
        """All of it is on the device when this returns."""
        self._write()
        self._flush()
        self._log.close()
        self._log.relax()

    def _write(self) -> None:
        if not self._parts:
            return
        self._log.tail.put_payload(b"".join(self._parts), len(self._parts) // 2)
        self._log.write(self._now)
        self._unflushed += self._size
        self._parts.clear()
        self._size = 0
        if self._unflushed >= FLUSH:
            self._flush()

    def _flush(self) -> None:
        while self._log.refused is None and (work := self._log.flush()):
            work()
        if self._log.refused is not None:
            raise self._log.refused
        self._unflushed = 0


class JournalWriter:
    """Appends entries, a block at a time."""

    def __init__(self, journal: Journal, now: int) -> None:
        self._journal = journal
        self._now = now
        self._entries: list[Entry] = []
        self._size = 0

    def add(self, *entries: Entry) -> None:
        for entry in entries:
            self._size += _ENTRY + (len(entry.unfinished) if isinstance(entry, Progress) else 0)
        self._entries += entries
        if self._size >= BLOCK:
            self._write()

    def finish(self) -> None:
        """All of it is on the device when this returns."""
        self._write()
        while work := self._journal.flush_work():
            work()
            if self._journal.failed is not None:
                raise self._journal.failed

    def _write(self) -> None:
        self._journal.append(self._entries, self._now)
        self._entries.clear()
        self._size = 0
