"""Notes of which entries of a bucket stand in the topic's log. Knows the files they are in, and nothing of the log.

    <bucket's name>_<number>.moved     batches with a key and nothing else: the keys under which entries were moved

A note is written behind the flush of the log that holds the batch, and before recovery of the log would miss that
batch: so a moved entry is known either from its note or from the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.log.damage import report
from penstock.log.files import write_whole
from penstock.log.index import Index, Mark
from penstock.log.scan import Reader, scan
from penstock.protocol.batch import HEADER, KEYED, MOVED, encode

if TYPE_CHECKING:
    from penstock.log.disk import Disk
    from penstock.log.files import Files
    from penstock.log.work import Work

SUFFIX: Final = ".moved"


class Notes:
    """The notes of one bucket; a file that an error may have spoilt, or that recovery found, is not written again."""

    __slots__ = ("_count", "_files", "_first", "_name", "_number", "_position", "_seed")

    def __init__(self, files: Files, directory: str, prefix: str, seed: int) -> None:
        self._files = files
        self._name = f"{directory}/{prefix}"
        self._seed = seed ^ 0x6D6F7665
        self._first = 0  # the number of the first file
        self._number = 0  # and of the one that is written
        self._position = 0
        self._count = 0  # notes in it

    def _path(self, number: int) -> str:
        return f"{self._name}{number:06d}{SUFFIX}"

    @property
    def paths(self) -> list[str]:
        """Of all files there may be."""
        return [self._path(number) for number in range(self._first, self._number + 1)]

    def read(self, disk: Disk, numbers: list[int]) -> list[bytes]:
        """The keys in the files of these numbers; what is damaged in them is told of, and may be moved twice."""
        keys: list[bytes] = []
        for number in numbers:
            keys += self._read(disk, self._path(number))
        if numbers:
            self._first, self._number = min(numbers), max(numbers) + 1
        return keys

    def _read(self, disk: Disk, path: str) -> list[bytes]:
        found: list[bytes] = []
        index = Index()
        fd = self._files.open(path, read_only=True)
        try:
            reader = Reader(self._files, fd, self._files.size(fd))
            scan(reader, Mark(0, 0, 0), self._seed, index, found)
            for gap in index.gaps:
                report(disk, path, reader, gap)
        finally:
            self._files.close(fd)
        return [key_of(header) for header in found]

    def add(self, work: Work, key: bytes) -> bool:
        """Add a step that writes and flushes a note; True where the directory has to be flushed as well."""
        path, position = self._path(self._number), self._position
        note = encode(self._count, 1, 0, b"", self._seed, flags=KEYED | MOVED, key=key)
        work.step(lambda: self._write(path, note, position))
        work.then(lambda: self._written(len(note)))
        work.otherwise(lambda _error: self._next_file())
        return not position

    def _write(self, path: str, note: bytearray, position: int) -> None:
        fd = self._files.open(path, create=True)
        try:
            write_whole(self._files, fd, note, position)
            self._files.flush(fd)
        finally:
            self._files.close(fd)

    def _written(self, size: int) -> None:
        self._position += size
        self._count += 1

    def _next_file(self) -> None:
        self._number += 1
        self._position = self._count = 0


def key_of(header: bytes) -> bytes:
    """The key of a batch, of which only what stands before its payload is there."""
    return header[HEADER:]
