"""Files whose calls fail as a test says; all others go through to the files beneath, real or in memory.

    failing = FailingFiles(MemoryFiles())
    failing.fail(errno.EIO, skip=7)                                 # the eighth call from now, whatever it is
    failing.fail(errno.ENOSPC, on="write", path="*.log", written=5) # the next write there: 5 bytes, then the error
    full = failing.fail(errno.EDQUOT, on=("write", "open"), times=None)   # each of them, until ...
    failing.heal(full)                                              # ... this; heal() takes back all
    failing.shorten(3, on="write")                                  # the next write says that it wrote 3 bytes, and did
    failing.before = lambda call: ...                               # before each call, e.g. to hold a flush back

Each call in turn: let the history run once, then again for each `n in range(len(failing.calls))`, on new files, with
`fail(error, skip=n)`. A fault that was not met is a test that shows nothing: look at `fault.met`.

A call that fails does nothing, as on Linux with three exceptions: `close` has closed, `exists` answers False, and a
failed `flush` is forgotten: the next one of the file succeeds though the bytes are not on the device (`PowerCuts`
beneath knows that).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from penstock.log.files import Files

from .power_cuts import PowerCuts

if TYPE_CHECKING:
    from typing_extensions import Buffer

_T = TypeVar("_T")
Paths: TypeAlias = str | Callable[[str], bool]


class Call(NamedTuple):
    """A method of `Files` and the path, or for a rename both paths, that it is about."""

    method: str
    paths: tuple[str, ...]


@dataclass(eq=False)
class Fault:
    """Which calls fail, and how; `met` counts those that did."""

    error: int
    on: tuple[str, ...]
    path: Paths
    skip: int
    times: int | None
    written: int
    met: int = 0

    def meets(self, call: Call) -> bool:
        """Whether this call fails; counts it."""
        if self.times is not None and self.met >= self.times:
            return False
        if self.on and call.method not in self.on:
            return False
        if not any(self.path(path) if callable(self.path) else fnmatchcase(path, self.path) for path in call.paths):
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.met += 1
        return True

    def strike(self, call: Call) -> None:
        if self.error:
            raise OSError(self.error, os.strerror(self.error), *call.paths[:1])


class FailingFiles(Files):
    """Any files, with faults; see the module."""

    def __init__(self, files: Files) -> None:
        self.beneath = files
        self.calls: list[Call] = []
        self.before: Callable[[Call], None] = lambda call: None
        self._faults: list[Fault] = []
        self._paths: dict[int, str] = {}
        self._lock = Lock()

    # What tests say

    def fail(
        self,
        error: int,
        *,
        on: str | tuple[str, ...] = (),
        path: Paths = "*",
        skip: int = 0,
        times: int | None = 1,
        written: int = 0,
    ) -> Fault:
        """Calls that match, after `skip` of them, `times` of them (None: all), raise this errno.

        `on` names methods, all if empty; `path` is a pattern or a predicate; a write has `written` bytes done before.
        """
        fault = Fault(error, (on,) if isinstance(on, str) else on, path, skip, times, written)
        self._faults.append(fault)
        return fault

    def shorten(self, written: int, *, path: Paths = "*", skip: int = 0, times: int | None = 1) -> Fault:
        """Writes that match do only this many bytes, and say so."""
        return self.fail(0, on="write", path=path, skip=skip, times=times, written=written)

    def heal(self, fault: Fault | None = None) -> None:
        """Take back this fault, or all."""
        self._faults = [] if fault is None else [other for other in self._faults if other is not fault]

    @contextmanager
    def healthy(self) -> Iterator[None]:
        """No call fails in the block."""
        faults, self._faults = self._faults, []
        yield
        self._faults = faults

    # The seam

    def open(
        self,
        path: str,
        *,
        create: bool = False,
        exclusive: bool = False,
        truncate: bool = False,
        read_only: bool = False,
    ) -> int:
        self._run("open", path)
        fd = self.beneath.open(path, create=create, exclusive=exclusive, truncate=truncate, read_only=read_only)
        self._paths[fd] = path
        return fd

    def close(self, fd: int) -> None:
        call, fault = self._meet("close", self._path(fd))
        self.beneath.close(fd)
        self._paths.pop(fd, None)
        if fault:
            fault.strike(call)

    def write(self, fd: int, data: Buffer, position: int) -> int:
        call, fault = self._meet("write", self._path(fd))
        if fault is None:
            return self.beneath.write(fd, data, position)
        part = memoryview(data).cast("B")[: fault.written]
        done = self.beneath.write(fd, part, position) if part else 0
        fault.strike(call)
        return done

    def read(self, fd: int, size: int, position: int) -> bytes:
        self._run("read", self._path(fd))
        return self.beneath.read(fd, size, position)

    def read_now(self, fd: int, size: int, position: int) -> bytes | memoryview | None:
        self._run("read_now", self._path(fd))
        return self.beneath.read_now(fd, size, position)

    def truncate(self, fd: int, size: int) -> None:
        self._run("truncate", self._path(fd))
        self.beneath.truncate(fd, size)

    def size(self, fd: int) -> int:
        self._run("size", self._path(fd))
        return self.beneath.size(fd)

    def flush(self, fd: int) -> None:
        call, fault = self._meet("flush", self._path(fd))
        if fault is None:
            self.beneath.flush(fd)
            return
        if isinstance(self.beneath, PowerCuts):
            self.beneath.forget(fd)
        fault.strike(call)

    def flush_directory(self, path: str) -> None:
        self._run("flush_directory", path)
        self.beneath.flush_directory(path)

    def flush_all(self, path: str) -> None:
        self._run("flush_all", path)
        self.beneath.flush_all(path)

    def rename(self, source: str, target: str) -> None:
        self._run("rename", source, target)
        self.beneath.rename(source, target)
        for fd, path in list(self._paths.items()):
            if path == source or path.startswith(f"{source}/"):
                self._paths[fd] = target + path[len(source) :]

    def unlink(self, path: str) -> None:
        self._run("unlink", path)
        self.beneath.unlink(path)

    def make_directory(self, path: str) -> None:
        self._run("make_directory", path)
        self.beneath.make_directory(path)

    def remove_directory(self, path: str) -> None:
        self._run("remove_directory", path)
        self.beneath.remove_directory(path)

    def list(self, path: str) -> Iterator[tuple[str, bool]]:
        self._run("list", path)
        yield from self.beneath.list(path)

    def exists(self, path: str) -> bool:
        return self._meet("exists", path)[1] is None and self.beneath.exists(path)

    def free(self, path: str) -> int:
        self._run("free", path)
        return self.beneath.free(path)

    def lock_directory(self, path: str) -> int:
        self._run("lock_directory", path)
        fd = self.beneath.lock_directory(path)
        self._paths[fd] = path
        return fd

    def _path(self, fd: int) -> str:
        return self._paths.get(fd, "")

    def _meet(self, method: str, *paths: str) -> tuple[Call, Fault | None]:
        """Count the call; the fault that it meets."""
        call = Call(method, paths)
        self.before(call)
        with self._lock:
            self.calls.append(call)
            return call, next((fault for fault in self._faults if fault.meets(call)), None)

    def _run(self, method: str, *paths: str) -> None:
        call, fault = self._meet(method, *paths)
        if fault:
            fault.strike(call)
