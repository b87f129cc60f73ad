"""Writing one queue in the original's format. Knows its files; knows neither topics nor the list of them."""

from __future__ import annotations

import struct
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from penstock.errors import log_error
from penstock.log.files import write_whole
from penstock.log.original.meta import Meta, encode
from penstock.log.original.names import data_name, meta_name
from penstock.log.original.records import HEAD, SMALLEST
from penstock.protocol.batch import RECORD

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from typing_extensions import Buffer

    from penstock.log.files import Files

_BUFFER: Final = 1 << 18
_SIZE: Final = struct.Struct(">I")


class QueueWriter:
    """One queue as files that roll before one would grow over `max_bytes`, as nsqd rolls them.

    A message larger than that gets a file of its own. From the first message until `finish` one file is open.
    """

    def __init__(self, files: Files, folder: str, name: str, max_bytes: int) -> None:
        self.name = name
        self.count = 0
        self.largest = 0  # bytes of the largest body
        self._files = files
        self._folder = folder
        self._max_bytes = max_bytes
        self._fd = -1
        self._made = 0  # data files so far
        self._written = 0  # bytes in the last one
        self._buffer = bytearray()
        self._finished = False

    def put(self, timestamp: int, id_: bytes, attempts: int, body: bytes) -> None:
        """Add a message; the id is 16 hex digits."""
        self._room(RECORD + len(body))
        self._buffer += HEAD.pack(SMALLEST + len(body), timestamp, attempts, id_)
        self._buffer += body
        self._added(len(body))

    def put_records(self, data: Buffer, starts: Sequence[int]) -> None:
        """Add the records that begin at `starts`, as they stand in a batch."""
        view = memoryview(data)
        for at in starts:
            size = _SIZE.unpack_from(view, at)[0]
            if size < SMALLEST or size > len(view) - at - 4:
                raise ValueError("no record")
            self._room(4 + size)
            self._buffer += view[at : at + 4 + size]
            self._added(size - SMALLEST)

    def finish(self) -> None:
        """All of it is on the device when this returns, but for the entries of the directory."""
        if self._finished or not self._made:  # nsqd needs no files for an empty queue
            return
        self._close()
        path = self._path(meta_name(self.name))
        with self._doing("writing", path):
            fd = self._files.open(path, create=True, exclusive=True)
            try:
                write_whole(self._files, fd, encode(Meta(self.count, 0, 0, self._made - 1, self._written)), 0)
                self._files.flush(fd)
            finally:
                self._files.close(fd)
        self._finished = True

    def remove(self) -> None:
        """Take away what was written, as far as that can be done."""
        if self._fd >= 0:
            with suppress(OSError):
                self._files.close(self._fd)
            self._fd = -1
        for name in (meta_name(self.name), *(data_name(self.name, number) for number in range(self._made))):
            with suppress(OSError):
                self._files.unlink(self._path(name))

    def _room(self, size: int) -> None:
        """A file that takes `size` bytes more."""
        position = self._written + len(self._buffer)
        if self._fd >= 0 and position and position + size > self._max_bytes:
            self._close()
        if self._fd < 0:
            self._open()

    def _open(self) -> None:
        if self._finished:
            raise ValueError(f"{self.name} is finished")
        path = self._path(data_name(self.name, self._made))
        with self._doing("making", path):
            self._fd = self._files.open(path, create=True, exclusive=True)
        self._made += 1
        self._written = 0

    def _added(self, size: int) -> None:
        self.count += 1
        if size > self.largest:
            self.largest = size
        if len(self._buffer) >= _BUFFER:
            self._drain()

    def _drain(self) -> None:
        with self._doing("writing", self._path(data_name(self.name, self._made - 1))):
            write_whole(self._files, self._fd, self._buffer, self._written)
        self._written += len(self._buffer)
        self._buffer.clear()

    def _close(self) -> None:
        self._drain()
        with self._doing("flushing", self._path(data_name(self.name, self._made - 1))):
            self._files.flush(self._fd)
        self._files.close(self._fd)
        self._fd = -1

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}"

    @contextmanager
    def _doing(self, what: str, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise log_error(error, f"{what} {path}") from error
