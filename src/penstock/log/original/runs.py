"""Sorting more entries than memory should hold: sorted runs in one file, merged by blocks. Knows bytes of one size.

Entries are compared as bytes. Memory holds one run while adding, and while merging a block of each run; the sort of a
few blocks that are sorted already is a merge, done in C.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from penstock.errors import log_error
from penstock.log.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.log.files import Files

HELD: Final = 1 << 17  # entries in memory


class Runs:
    """Entries of `size` bytes: `add` them in any order, `blocks` gives them back sorted. `path` exists meanwhile."""

    def __init__(self, files: Files, path: str, size: int, held: int = HELD) -> None:
        self.count = 0
        self._files = files
        self._path = path
        self._size = size
        self._held = held
        self._fd = -1
        self._entries: list[bytes] = []
        self._last = b""  # the greatest entry of the last run
        self._runs: list[_Run] = []

    def add(self, entries: list[bytes]) -> None:
        self._entries += entries
        self.count += len(entries)
        if len(self._entries) >= self._held:
            self._spill()

    def blocks(self) -> Iterator[bytes]:
        """All entries in order, as many at a time as are ready; to be called once."""
        if not self._runs:
            self._entries.sort()
            yield b"".join(self._entries)
            return
        self._spill()
        block = max(64, self._held // len(self._runs))
        runs = self._runs
        while runs := [run for run in runs if run.ready or self._refill(run, block)]:
            bound = min(run.ready[-1] for run in runs)  # nothing that is still in the file sorts before it
            out: list[bytes] = []
            for run in runs:
                cut = bisect_right(run.ready, bound)
                out += run.ready[:cut]
                del run.ready[:cut]
            out.sort()
            yield b"".join(out)

    def close(self) -> None:
        """Remove what was written."""
        fd, self._fd = self._fd, -1
        if fd < 0:
            return
        try:
            self._files.close(fd)
            self._files.unlink(self._path)
        except OSError as error:
            raise log_error(error, f"removing {self._path}") from error

    def _spill(self) -> None:
        """Write a sorted run, or more of the last one where all of it sorts behind that."""
        if not self._entries:
            return
        self._entries.sort()
        start = self._runs[-1].stop if self._runs else 0
        stop = start + len(self._entries) * self._size
        try:
            if self._fd < 0:
                self._fd = self._files.open(self._path, create=True, truncate=True)
            write_whole(self._files, self._fd, b"".join(self._entries), start)
        except OSError as error:
            raise log_error(error, f"writing {self._path}") from error
        if self._runs and self._entries[0] >= self._last:
            self._runs[-1].stop = stop
        else:
            self._runs.append(_Run(start, stop))
        self._last = self._entries[-1]
        self._entries = []

    def _refill(self, run: _Run, count: int) -> bool:
        """Read the next entries of a run; False at its end."""
        size = self._size
        try:
            data = self._files.read(self._fd, min(count * size, run.stop - run.position), run.position)
        except OSError as error:
            raise log_error(error, f"reading {self._path}") from error
        run.position += len(data)
        run.ready = [data[at : at + size] for at in range(0, len(data), size)]
        return bool(data)


class _Run:
    """A sorted part of the file, of which what lies before `position` is in `ready` or gone."""

    __slots__ = ("position", "ready", "stop")

    def __init__(self, position: int, stop: int) -> None:
        self.position = position
        self.stop = stop
        self.ready: list[bytes] = []
