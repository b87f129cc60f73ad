"""The file system as the log sees it, and nothing else: the seam where tests put a failing or a recording one.

Paths are strings, files are descriptors; every call is one system call and raises what that raises (`OSError`).
All positions are explicit: no descriptor has a place that one user could move under another.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing_extensions import Buffer

_READ_NOW: Final = getattr(os, "RWF_NOWAIT", 0)


class Files:
    """The real file system."""

    slow = False  # whoever measures it says so: a write may take as long as would hold up others

    def open(
        self,
        path: str,
        *,
        create: bool = False,
        exclusive: bool = False,
        truncate: bool = False,
        read_only: bool = False,
    ) -> int:
        """A descriptor, for reading and writing unless `read_only`; `exclusive` fails where the file exists."""
        flags = (os.O_RDONLY if read_only else os.O_RDWR) | os.O_CLOEXEC
        if create:
            flags |= os.O_CREAT
        if exclusive:
            flags |= os.O_EXCL
        if truncate:
            flags |= os.O_TRUNC
        return os.open(path, flags, 0o644)

    def close(self, fd: int) -> None:
        os.close(fd)

    def write(self, fd: int, data: Buffer, position: int) -> int:
        """How many bytes were written: as with pwrite, perhaps not all."""
        return os.pwrite(fd, data, position)

    def read(self, fd: int, size: int, position: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the file."""
        return os.pread(fd, size, position)

    def read_now(self, fd: int, size: int, position: int) -> bytes | memoryview | None:
        """As `read`, or None where the device would have to be waited for."""
        if not _READ_NOW:
            return self.read(fd, size, position)
        buffer = bytearray(size)
        try:
            got = os.preadv(fd, [buffer], position, _READ_NOW)
        except BlockingIOError:
            return None
        except OSError:  # a file system that cannot say: tmpfs and some network ones
            return self.read(fd, size, position)
        if got < size and position + got < self.size(fd):  # what comes after it is not in memory
            return None
        return memoryview(buffer)[:got]

    def truncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def size(self, fd: int) -> int:
        return os.fstat(fd).st_size

    def flush(self, fd: int) -> None:
        """The file's bytes and its size are on the device when this returns (fdatasync)."""
        os.fdatasync(fd)

    def flush_directory(self, path: str) -> None:
        """What was created, renamed and removed in the directory is on the device when this returns."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def flush_all(self, path: str) -> None:
        """Everything written to any file so far is on the device when this returns; for many files at once."""
        os.sync()

    def rename(self, source: str, target: str) -> None:
        """`target` is replaced in one step."""
        os.rename(source, target)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def make_directory(self, path: str) -> None:
        os.mkdir(path, 0o755)

    def remove_directory(self, path: str) -> None:
        os.rmdir(path)

    def list(self, path: str) -> Iterator[tuple[str, bool]]:
        """(name, is a directory) of each entry, in no order."""
        with os.scandir(path) as entries:
            for entry in entries:
                yield entry.name, entry.is_dir(follow_symlinks=False)

    def exists(self, path: str) -> bool:
        return os.path.lexists(path)

    def free(self, path: str) -> int:
        """Bytes that an ordinary user may still write on the file system of `path`."""
        room = os.statvfs(path)
        return room.f_bavail * room.f_frsize

    def lock_directory(self, path: str) -> int:
        """A descriptor that holds the directory's lock until it is closed; BlockingIOError where another has it."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            os.close(fd)
            raise
        return fd


def write_whole(files: Files, fd: int, data: Buffer, position: int) -> None:
    """All of `data` at `position`, or OSError with any part of it written."""
    view = memoryview(data)
    done, size = files.write(fd, view, position), view.nbytes
    if done == size:
        return
    view = view.cast("B")
    while done < size:
        more = files.write(fd, view[done:], position + done)
        if not more:
            raise OSError(errno.EIO, "nothing was written")
        done += more


def replace(files: Files, path: str, data: bytes, *, flush: bool = True) -> None:
    """`path` holds `data` whole, or what it held before; with `flush` also after a power cut, and durable at return."""
    partial = f"{path}.partial"
    fd = files.open(partial, create=True, truncate=True)
    try:
        write_whole(files, fd, data, 0)
        if flush:
            files.flush(fd)
    finally:
        files.close(fd)
    files.rename(partial, path)
    if flush:
        files.flush_directory(os.path.dirname(path))


def read_whole(files: Files, path: str) -> bytes:
    fd = files.open(path, read_only=True)
    try:
        return files.read(fd, files.size(fd), 0)
    finally:
        files.close(fd)
