"""A file system in memory behind the `Files` seam: it answers as Linux does, to the errno, and waits for nothing.

    files = MemoryFiles()
    files.capacity = 4096                   # the disk ends here: short writes up to it, then ENOSPC; None is endless
    files.descriptors = 8                   # so many at once, then EMFILE
    files.cold.add("/data/a.log")           # `read_now` answers None for this file until it is taken out again
    assert files.tree() == {"/data": None, "/data/a.log": b"..."}
    assert files.opened() == []             # nothing was left open

Paths begin at "/" (which is there); a relative path begins there too; `..` and links do not exist. A descriptor is
never used twice and is none that the real system has, so that one used after its close, or outside, is always EBADF.
Room is counted in bytes of file size, holes included; names and directories take none. Threads may share it.
"""

from __future__ import annotations

import errno
import zlib
from collections.abc import Callable, Iterator
from functools import wraps
from threading import RLock
from typing import TYPE_CHECKING, Concatenate, Final, ParamSpec, TypeVar

from penstock.log.files import Files

from .inodes import Directory, File, Node, Opened, fail, walk

if TYPE_CHECKING:
    from typing_extensions import Buffer

LARGEST: Final = 1 << 30  # EFBIG beyond: holes are not sparse here, so an absurd position would take real memory
ENDLESS: Final = 1 << 50  # what `free` answers where there is no capacity
_FIRST_DESCRIPTOR: Final = 1_000_000


_P = ParamSpec("_P")
_T = TypeVar("_T")
_Self = TypeVar("_Self", bound="MemoryFiles")


def _whole(method: Callable[Concatenate[_Self, _P], _T]) -> Callable[Concatenate[_Self, _P], _T]:
    """Under the lock: as one system call is to another."""

    @wraps(method)
    def locked(self: _Self, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        with self.lock:
            return method(self, *args, **kwargs)

    return locked


class MemoryFiles(Files):
    """Files in memory; see the module for what a test may set."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.capacity: int | None = None
        self.descriptors: int | None = None
        self.cold: set[str] = set()
        self.origin: object = None  # what a state rebuilt by `PowerCuts` says of itself
        self.used = 0
        self.root = Directory(0, "/")
        self._numbers = 0
        self._opened: dict[int, Opened] = {}
        self._next_descriptor = _FIRST_DESCRIPTOR

    def __repr__(self) -> str:
        told = (f"{path}/" if data is None else f"{path} {len(data)}" for path, data in self.tree().items())
        return f"<{type(self).__name__} {', '.join(told)}{'' if self.origin is None else f'; {self.origin}'}>"

    # What tests ask for

    @_whole
    def tree(self) -> dict[str, bytes | None]:
        """Every path but "/", sorted: a file's bytes, or None for a directory."""
        found: dict[str, bytes | None] = {}

        def visit(directory: Directory, path: str) -> None:
            for name, node in directory.entries.items():
                found[f"{path}/{name}"] = node.share() if isinstance(node, File) else None
                if isinstance(node, Directory):
                    visit(node, f"{path}/{name}")

        visit(self.root, "")
        return dict(sorted(found.items()))

    def opened(self) -> list[str]:
        """The path of each open descriptor, as it was opened."""
        return [opened.path for opened in list(self._opened.values())]

    @_whole
    def copy(self) -> MemoryFiles:
        """An independent file system as the next process would find it: no descriptors, no locks."""
        twin = MemoryFiles()
        twin._adopt(self)
        return twin

    # The seam: files

    @_whole
    def open(
        self,
        path: str,
        *,
        create: bool = False,
        exclusive: bool = False,
        truncate: bool = False,
        read_only: bool = False,
    ) -> int:
        self._descriptor_left()
        parent, name, node = self._walk(path)
        if node is None:
            if not create:
                fail(errno.ENOENT, path)
            node = File(self._number(), path=path)
            self._link(parent, name, node)
        elif create and exclusive:
            fail(errno.EEXIST, path)
        elif isinstance(node, Directory) and (create or truncate or not read_only):
            fail(errno.EISDIR, path)
        elif isinstance(node, File) and truncate and node.data:
            self._resize(node, 0)
        return self._open(Opened(node, path, writable=not read_only))

    @_whole
    def close(self, fd: int) -> None:
        opened = self._get(fd)
        del self._opened[fd]
        if isinstance(opened.node, File):
            opened.node.opened -= 1
            self._release(opened.node)
        elif opened.locks:
            opened.node.locked = False

    @_whole
    def write(self, fd: int, data: Buffer, position: int) -> int:
        if position < 0:
            fail(errno.EINVAL)
        file = self._writable(fd, errno.EBADF)
        content = bytes(data)
        if not content:
            return 0
        if position + len(content) > LARGEST:
            fail(errno.EFBIG)
        if self.capacity is not None and position + len(content) > len(file.data):
            content = content[: max(0, len(file.data) + self._room() - position)]
            if not content:
                fail(errno.ENOSPC)
        self._put(file, position, content)
        return len(content)

    @_whole
    def read(self, fd: int, size: int, position: int) -> bytes:
        if size < 0 or position < 0:
            fail(errno.EINVAL)
        file = self._file(fd, errno.EISDIR)
        return bytes(file.data[position : position + size])

    @_whole
    def read_now(self, fd: int, size: int, position: int) -> bytes | None:
        node = self._get(fd).node
        if any(self._find(path) is node for path in self.cold):
            return None
        return self.read(fd, size, position)

    @_whole
    def truncate(self, fd: int, size: int) -> None:
        """A file grown by this takes room at once, and ENOSPC may come of it: harder than Linux."""
        file = self._writable(fd, errno.EINVAL)
        if size < 0:
            fail(errno.EINVAL)
        if size > LARGEST:
            fail(errno.EFBIG)
        if self.capacity is not None and size - len(file.data) > self._room():
            fail(errno.ENOSPC)
        if size != len(file.data):
            self._resize(file, size)

    @_whole
    def size(self, fd: int) -> int:
        node = self._get(fd).node
        return len(node.data) if isinstance(node, File) else 0

    @_whole
    def flush(self, fd: int) -> None:
        self._flushed(self._get(fd).node)

    # The seam: directories

    @_whole
    def flush_directory(self, path: str) -> None:
        self._descriptor_left()
        self._flushed(self._directory(path))

    @_whole
    def flush_all(self, path: str) -> None:
        self._flushed_all()

    @_whole
    def rename(self, source: str, target: str) -> None:
        parent, name, node = self._walk(source)
        new_parent, new_name, replaced = self._walk(target)
        if not name or not new_name:
            fail(errno.EBUSY, source)
        if node is None:
            fail(errno.ENOENT, source)
        if isinstance(node, Directory) and node.holds(new_parent):
            fail(errno.EINVAL, source)
        if isinstance(replaced, Directory) and replaced.holds(parent):
            fail(errno.ENOTEMPTY, source)
        if replaced is node:
            return
        if replaced is not None and isinstance(node, Directory) != isinstance(replaced, Directory):
            fail(errno.ENOTDIR if isinstance(node, Directory) else errno.EISDIR, source)
        if isinstance(replaced, Directory) and replaced.entries:
            fail(errno.ENOTEMPTY, source)
        node.path = target
        self._move(parent, name, new_parent, new_name)

    @_whole
    def unlink(self, path: str) -> None:
        parent, name, node = self._walk(path)
        if isinstance(node, Directory):
            fail(errno.EISDIR, path)
        if node is None:
            fail(errno.ENOENT, path)
        self._drop(parent, name)

    @_whole
    def make_directory(self, path: str) -> None:
        parent, name, node = self._walk(path)
        if node is not None:
            fail(errno.EEXIST, path)
        self._link(parent, name, Directory(self._number(), path))

    @_whole
    def remove_directory(self, path: str) -> None:
        parent, name, _ = self._walk(path)
        directory = self._directory(path)
        if not name:
            fail(errno.EBUSY, path)
        if directory.entries:
            fail(errno.ENOTEMPTY, path)
        self._drop(parent, name)

    def list(self, path: str) -> Iterator[tuple[str, bool]]:
        """In an order that means nothing, but is the same in each run."""
        with self.lock:
            self._descriptor_left()
            found = [(name, isinstance(node, Directory)) for name, node in self._directory(path).entries.items()]
        yield from sorted(found, key=lambda entry: zlib.crc32(entry[0].encode()))

    @_whole
    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    @_whole
    def free(self, path: str) -> int:
        if self._walk(path)[2] is None:
            fail(errno.ENOENT, path)
        return ENDLESS if self.capacity is None else self._room()

    @_whole
    def lock_directory(self, path: str) -> int:
        self._descriptor_left()
        directory = self._directory(path)
        if directory.locked:
            fail(errno.EAGAIN)
        directory.locked = True
        return self._open(Opened(directory, path, writable=False, locks=True))

    # The changes, one method each, and what was flushed: where a recorder listens

    def _link(self, parent: Directory, name: str, node: Node) -> None:
        parent.entries[name] = node
        if isinstance(node, File):
            node.links += 1

    def _drop(self, parent: Directory, name: str) -> None:
        node = parent.entries.pop(name)
        if isinstance(node, File):
            node.links -= 1
            self._release(node)

    def _move(self, parent: Directory, name: str, new_parent: Directory, new_name: str) -> None:
        replaced = new_parent.entries.pop(new_name, None)
        new_parent.entries[new_name] = parent.entries.pop(name)
        if isinstance(replaced, File):
            replaced.links -= 1
            self._release(replaced)

    def _put(self, file: File, position: int, content: bytes) -> None:
        before = len(file.data)
        data = file.own()
        if position > before:
            data += bytes(position - before)
        data[position : position + len(content)] = content
        self.used += len(data) - before

    def _resize(self, file: File, size: int) -> None:
        before = len(file.data)
        data = file.own()
        if size < before:
            del data[size:]
        else:
            data += bytes(size - before)
        self.used += size - before

    def _flushed(self, node: Node) -> None:
        """Nothing is lost in memory."""

    def _flushed_all(self) -> None:
        """Nothing is lost in memory."""

    # Paths, descriptors, room

    def _walk(self, path: str) -> tuple[Directory, str, Node | None]:
        return walk(self.root, path)

    def _find(self, path: str) -> Node | None:
        try:
            return self._walk(path)[2]
        except OSError:
            return None

    def _directory(self, path: str) -> Directory:
        node = self._walk(path)[2]
        if node is None:
            fail(errno.ENOENT, path)
        if isinstance(node, File):
            fail(errno.ENOTDIR, path)
        return node

    def _descriptor_left(self) -> None:
        if self.descriptors is not None and len(self._opened) >= self.descriptors:
            fail(errno.EMFILE)

    def _open(self, opened: Opened) -> int:
        if isinstance(opened.node, File):
            opened.node.opened += 1
        self._next_descriptor += 1
        self._opened[self._next_descriptor] = opened
        return self._next_descriptor

    def _get(self, fd: int) -> Opened:
        opened = self._opened.get(fd)
        if opened is None:
            fail(errno.EBADF)
        return opened

    def _file(self, fd: int, otherwise: int) -> File:
        """The open file, or the errno that the call has for a directory."""
        node = self._get(fd).node
        if isinstance(node, Directory):
            fail(otherwise)
        return node

    def _writable(self, fd: int, otherwise: int) -> File:
        if not self._get(fd).writable:
            fail(otherwise)
        return self._file(fd, otherwise)

    def _room(self) -> int:
        return max(0, (self.capacity or 0) - self.used)

    def _release(self, file: File) -> None:
        """An unlinked file takes room until its last descriptor is closed."""
        if not file.links and not file.opened:
            self.used -= len(file.data)

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _adopt(self, other: MemoryFiles) -> None:
        """Become what `other` is, sharing the bytes."""
        self.root = other.root.twin()
        self.used = self.root.used()
        self._numbers = other._numbers
        self.capacity = other.capacity
        self.descriptors = other.descriptors
        self.cold = set(other.cold)
