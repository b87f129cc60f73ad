"""One queue of the original: its files, read from its read position to the end of what is there. Writes nothing.

nsqd writes a queue's meta file now and then (`--sync-every`, `--sync-timeout`, each roll), so that after a kill both
positions are old: what lies between the old and the true read position comes again, and what lies behind the write
position is real. So reading begins at the read position and ends where the files end, as nsqd itself does it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from penstock.errors import log_error
from penstock.log.original.data_file import Block, read_records
from penstock.log.original.findings import Finding, Findings, Kind
from penstock.log.original.names import data_name, meta_name
from penstock.log.scan import Reader
from penstock.protocol.batch import RECORD

if TYPE_CHECKING:
    from penstock.log.files import Files
    from penstock.log.original.meta import Meta


class Message(NamedTuple):
    """One message as the original keeps it; the id is 16 hex digits."""

    timestamp: int
    id: bytes
    attempts: int
    body: bytes


class Queue:
    """A topic's or a channel's queue: files by number, of which the meta file says where reading goes on."""

    def __init__(
        self, files: Files, folder: str, name: str, numbers: list[int], meta: Meta | None, findings: Findings
    ) -> None:
        self.name = name
        self.meta = meta
        self.records = 0  # that were found when it was last read to the end
        self._files = files
        self._folder = folder
        self._numbers = sorted(numbers)
        self._findings = findings

    @property
    def depth(self) -> int:
        """How many messages the meta file counts: a hint, exact after a clean shutdown."""
        return max(0, self.meta.depth) if self.meta else 0

    def path(self, number: int) -> str:
        return f"{self._folder}/{data_name(self.name, number)}"

    def messages(self) -> Generator[Message, None, None]:
        """Every message in the queue's own order."""
        for _, (_, data, places) in self.blocks():
            for at, size, timestamp, attempts, id_ in places:
                yield Message(timestamp, id_, attempts, data[at + RECORD : at + 4 + size])

    def blocks(self) -> Iterator[tuple[int, Block]]:
        """The same with the number of their file, a window's worth of records at a time."""
        count = 0
        for number, start in self._plan():
            for block in self._blocks_of(number, start):
                count += len(block.places)
                yield number, block
        self.records = count
        if self.meta and self.meta.depth != count:
            self._tell(Kind.COUNT, meta_name(self.name), self.meta.depth, count)

    def _plan(self) -> list[tuple[int, int]]:
        """Which files to read and from where, telling of those that should or should not be there."""
        meta = self.meta
        if meta is None:
            return [(number, 0) for number in self._numbers]
        for number in self._numbers:
            if number < meta.read_file:
                self._tell(Kind.DELIVERED, data_name(self.name, number))
            elif number > meta.write_file:
                self._tell(Kind.BEYOND, data_name(self.name, number))
        self._tell_of_gaps(meta)
        return [
            (number, meta.read_at if number == meta.read_file else 0)
            for number in self._numbers
            if number >= meta.read_file
        ]

    def _tell_of_gaps(self, meta: Meta) -> None:
        """Files that the meta file counts on; the one written to is made with its first record."""
        last = meta.write_file if meta.write_at else meta.write_file - 1
        here = [number for number in self._numbers if meta.read_file <= number <= last]
        expected = meta.read_file
        for number in [*here, last + 1]:
            if expected < number:
                self._tell(Kind.GONE, data_name(self.name, expected), size=number - expected)
            expected = number + 1

    def _blocks_of(self, number: int, start: int) -> Iterator[Block]:
        """The records of one file, telling of what is wrong in it."""
        with self._opened(number) as reader:
            if start > reader.limit:
                self._tell(Kind.SHORT, data_name(self.name, number), start, start - reader.limit)
            self._compare_end(number, reader.limit)
            for part in read_records(reader, start):
                if isinstance(part, Block):
                    yield part
                else:
                    kind = Kind.TORN if part.torn else Kind.DAMAGED
                    self._tell(kind, data_name(self.name, number), part.position, part.size)

    def _compare_end(self, number: int, size: int) -> None:
        """Tell where the file that was written to does not end at the write position."""
        meta = self.meta
        if meta is None or number != meta.write_file or size == meta.write_at:
            return
        kind = Kind.LATE if size > meta.write_at else Kind.SHORT
        self._tell(kind, data_name(self.name, number), meta.write_at, abs(size - meta.write_at))

    @contextmanager
    def _opened(self, number: int) -> Iterator[Reader]:
        path = self.path(number)
        try:
            fd = self._files.open(path, read_only=True)
            try:
                reader = Reader(self._files, fd, self._files.size(fd))
                yield reader
            finally:
                self._files.close(fd)
        except OSError as error:
            raise log_error(error, f"reading {path}") from error
        if reader.unreadable:
            self._tell(Kind.UNREADABLE, data_name(self.name, number))

    def _tell(self, kind: Kind, file: str, position: int = 0, size: int = 0) -> None:
        self._findings[Finding(kind, file, position, size)] = None
