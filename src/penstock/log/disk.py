"""What all logs of a node share: the file system, the open files, and whom to tell of damage. Knows no format."""

from __future__ import annotations

import contextlib
import errno
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from penstock.errors import log_error
from penstock.log.files import Files


class Damage(NamedTuple):
    """Bytes that should have been batches and are not, or not there: they stay as they are, a copy is set aside."""

    path: str
    position: int
    size: int
    first: int  # the first offset lost
    next: int  # the first good offset behind it
    copy: str  # where the bytes were copied to; empty where that failed

    def __str__(self) -> str:
        lost = f"offsets [{self.first}, {self.next}) are lost" if self.next > self.first else "no offset is known lost"
        if not self.size:
            return f"{self.path}: a part is missing; {lost}"
        kept = f"copied to {self.copy}" if self.copy else "no copy could be made"
        return f"{self.path}: bytes {self.position} to {self.position + self.size} are bad, {kept}; {lost}"


class OpenFile:
    """An open descriptor; pinned while somebody's unflushed bytes or a thread depend on it."""

    __slots__ = ("error", "fd", "path", "pins", "unflushed")

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self.fd = fd  # -1 once closed
        self.pins = 0  # threads that use it now
        self.unflushed = False
        self.error: OSError | None = None  # a flush that failed: Linux tells it once, so it is kept here


class Disk:
    """Files by path, at most `limit` of them open: the one longest unused is closed first, a clean one if there is one.

    One with unflushed bytes is only closed after its flush, else the error of that flush would be told to nobody.
    Those that a thread uses, and those whose flush failed, stay open whatever the limit.
    """

    def __init__(
        self, files: Files | None = None, *, limit: int = 512, on_damage: Callable[[Damage], None] | None = None
    ) -> None:
        self.files = files or Files()
        self.limit = limit
        self.damages: list[Damage] = []
        self.clean = False  # the last process closed all files in order: no write was cut short
        self._on_damage = on_damage
        self._open: OrderedDict[str, OpenFile] = OrderedDict()
        self._latest: OpenFile | None = None  # which stands at the end of these, unless one was opened since
        self._leaving: list[OpenFile] = []  # closed while a thread used them

    def __len__(self) -> int:
        return len(self._open) + len(self._leaving)

    def open(self, path: str, *, create: bool = False) -> OpenFile:
        """The open file of `path`; good until the next call that opens another, unless it is pinned or unflushed."""
        file = self._open.get(path)
        if file is not None:
            self._latest = None
            self._open.move_to_end(path)
            return file
        self._close_left()
        while len(self) >= self.limit and (self._close_one(flush=False) or self._close_one(flush=True)):
            pass
        self._latest = None
        file = OpenFile(path, self._descriptor(path, create))
        self._open[path] = file
        return file

    def used(self, file: OpenFile) -> None:
        """It is not the one longest unused."""
        if file is not self._latest and file.path in self._open:
            self._latest = file
            self._open.move_to_end(file.path)

    def _descriptor(self, path: str, create: bool) -> int:
        while True:
            try:
                return self.files.open(path, create=create)
            except OSError as error:
                short = error.errno in (errno.EMFILE, errno.ENFILE)
                if not (short and (self._close_one(flush=False) or self._close_one(flush=True))):
                    raise

    def _close_one(self, *, flush: bool) -> bool:
        """Close the file longest unused; with `flush`, one with unflushed bytes after flushing them."""
        for path, file in self._open.items():
            if file.pins or file.error or file.unflushed is not flush:
                continue
            if flush and not self._flushed(file):
                continue
            self.close(path)
            return True
        return False

    def _flushed(self, file: OpenFile) -> bool:
        try:
            self.flush(file)
        except OSError:
            return False
        return True

    def flush(self, file: OpenFile) -> None:
        """Flush, and never again after a failure: the second time would lie. Safe on a thread while it is pinned."""
        if file.error is not None:
            raise file.error
        try:
            self.files.flush(file.fd)
        except OSError as error:
            file.error = error
            raise
        # what is written meanwhile sets the mark again: its writer does so after each write

    def close(self, path: str) -> None:
        """Its descriptor goes now, or as soon as no thread uses it: the number may at once be another file's."""
        file = self._open.pop(path, None)
        if file is not None:
            self._leaving.append(file)
        self._close_left()

    def _close_left(self) -> None:
        if not self._leaving:
            return
        ready = [file for file in self._leaving if not file.pins]
        self._leaving = [file for file in self._leaving if file.pins]
        for file in ready:
            fd, file.fd = file.fd, -1
            with contextlib.suppress(OSError):  # the descriptor is gone, and what had to be safe was flushed
                self.files.close(fd)

    def close_all(self) -> None:
        for path in list(self._open):
            self.close(path)

    def knows(self, path: str, position: int) -> bool:
        """Whether damage there was told of."""
        return any(damage.path == path and damage.position == position for damage in self.damages)

    def damaged(self, damage: Damage) -> None:
        self.damages.append(damage)
        if self._on_damage is not None:
            self._on_damage(damage)

    def ensure_directory(self, path: str) -> bool:
        """Make it where it is missing; True when it was."""
        if self.files.exists(path):
            return False
        try:
            self.files.make_directory(path)
        except OSError as error:
            raise log_error(error, f"making {path}") from error
        return True
