"""What `MemoryFiles` is made of: files, directories, descriptors, and the way from a path to one of them."""

from __future__ import annotations

import errno
import os
from typing import NoReturn, TypeAlias


class File:
    """What one inode holds. `bytes` may be shared with other states and are copied by the first write to them."""

    __slots__ = ("data", "links", "number", "opened", "path")

    def __init__(self, number: int, data: bytes | bytearray = b"", path: str = "", *, links: int = 0) -> None:
        self.number = number
        self.data = data
        self.path = path  # where it was linked last, for people
        self.links = links
        self.opened = 0

    def own(self) -> bytearray:
        if isinstance(self.data, bytes):
            self.data = bytearray(self.data)
        return self.data

    def share(self) -> bytes:
        if isinstance(self.data, bytearray):
            self.data = bytes(self.data)
        return self.data

    def twin(self) -> File:
        """A copy that shares the bytes and that nobody has open; with the one name that a file has here."""
        return File(self.number, self.share(), self.path, links=1)


class Directory:
    """Names and what they stand for."""

    __slots__ = ("entries", "locked", "number", "path")

    def __init__(self, number: int, path: str = "") -> None:
        self.number = number
        self.path = path
        self.entries: dict[str, Node] = {}
        self.locked = False

    def holds(self, inner: Directory) -> bool:
        """Whether `inner` is this directory or stands anywhere below it."""
        below = (node for node in self.entries.values() if isinstance(node, Directory))
        return self is inner or any(node.holds(inner) for node in below)

    def used(self) -> int:
        """The bytes of all files below."""
        return sum(node.used() if isinstance(node, Directory) else len(node.data) for node in self.entries.values())

    def twin(self) -> Directory:
        """A copy that shares the bytes and has no locks."""
        copy = Directory(self.number, self.path)
        for name, node in self.entries.items():
            copy.entries[name] = node.twin()
        return copy


Node: TypeAlias = File | Directory


class Opened:
    """One descriptor."""

    __slots__ = ("locks", "node", "path", "writable")

    def __init__(self, node: Node, path: str, *, writable: bool, locks: bool = False) -> None:
        self.node = node
        self.path = path
        self.writable = writable
        self.locks = locks


def fail(number: int, path: str | None = None) -> NoReturn:
    """Raise what the operating system raises for this errno."""
    raise OSError(number, os.strerror(number), *([] if path is None else [path]))


def walk(root: Directory, path: str) -> tuple[Directory, str, Node | None]:
    """(the directory it would stand in, its name there, what stands there); the name of "/" is empty."""
    if not path:
        fail(errno.ENOENT, path)
    parent, name = root, ""
    node: Node | None = root
    for part in path.split("/"):
        if part in ("", "."):
            continue
        if part == "..":
            raise ValueError("MemoryFiles has no `..`")
        if node is None:
            fail(errno.ENOENT, path)
        if isinstance(node, File):
            fail(errno.ENOTDIR, path)
        if len(os.fsencode(part)) > 255:
            fail(errno.ENAMETOOLONG, path)
        parent, name, node = node, part, node.entries.get(part)
    return parent, name, node
