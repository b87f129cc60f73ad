"""Bodies by their place in files, asked for in nearly rising order. Knows files and places, no record.

A queue that was requeued to or that overflowed from memory is a few rising sequences woven into one, so a few parts of
files are asked again and again: those are kept. A part is read whole when it is asked for the second time.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from penstock.errors import ImportFailed, log_error
from penstock.log.scan import Reader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.log.files import Files

_BITS: Final = 18  # a part is 256 KiB
_KEPT: Final = 64  # parts
_ASKED: Final = 16  # parts that were asked for once, lately
_OPEN: Final = 32  # files


class Bodies:
    """Reads from `paths`, which are named by their place in that list."""

    def __init__(self, files: Files, paths: Sequence[str]) -> None:
        self._files = files
        self._paths = paths
        self._open: OrderedDict[int, Reader] = OrderedDict()
        self._parts: dict[tuple[int, int], bytes] = {}
        self._asked: dict[tuple[int, int], None] = {}

    def read(self, source: int, position: int, size: int) -> bytes:
        part = position >> _BITS
        data = self._parts.get((source, part)) or self._part(source, part)
        at = position - (part << _BITS)
        body = data[at : at + size] if at + size <= len(data) else self._bytes(source, position, size)
        if len(body) != size:
            raise ImportFailed(f"{self._paths[source]} was changed while it was read")
        return body

    def close(self) -> None:
        while self._open:
            self._files.close(self._open.popitem()[1].fd)

    def _part(self, source: int, part: int) -> bytes:
        """The part, when it was asked for before."""
        key = (source, part)
        if key not in self._asked:
            self._asked[key] = None
            if len(self._asked) > _ASKED:
                del self._asked[next(iter(self._asked))]
            return b""
        del self._asked[key]
        data = self._parts[key] = self._bytes(source, part << _BITS, 1 << _BITS)
        if len(self._parts) > _KEPT:
            del self._parts[next(iter(self._parts))]
        return data

    def _bytes(self, source: int, position: int, size: int) -> bytes:
        try:
            return self._reader(source).read(position, size)
        except OSError as error:
            raise log_error(error, f"reading {self._paths[source]}") from error

    def _reader(self, source: int) -> Reader:
        reader = self._open.get(source)
        if reader is not None:
            self._open.move_to_end(source)
            return reader
        if len(self._open) >= _OPEN:
            self._files.close(self._open.popitem(last=False)[1].fd)
        fd = self._files.open(self._paths[source], read_only=True)
        reader = self._open[source] = Reader(self._files, fd, 0)
        reader.limit = self._files.size(fd)
        return reader
