"""Copies of single files, and segments checked in their copy. Knows nothing of the order in which that is done."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.errors import DiskFailed
from penstock.log.files import write_whole
from penstock.log.index import Gap, Index, Mark
from penstock.log.scan import WINDOW, scan
from penstock.log.tools.looking import names, opened

if TYPE_CHECKING:
    from penstock.log.files import Files
    from penstock.log.scan import Tail
    from penstock.log.tools.store import SegmentFile, Store

_LOOKS: Final = 3  # at a bad end, which the node may just have been writing


class Copy(NamedTuple):
    """A segment that was copied, and what was found in the copy."""

    path: str
    first: int
    tail: Tail
    size: int
    gaps: list[Gap]

    @property
    def records(self) -> int:
        return self.tail.offset - self.first - sum(gap.next - gap.first for gap in self.gaps)


def copy_segment(files: Files, store: Store, segment: SegmentFile, directory: str, size: int | None = None) -> Copy:
    """Copy a file, or its first `size` bytes, up to its last whole batch; FileNotFoundError where it has gone."""
    target = f"{directory}/{os.path.basename(segment.path)}"
    first = segment.first or 0
    for _ in range(_LOOKS):
        copied = copy_file(files, segment.path, target, size)
        index = Index()
        with opened(files, target) as reader:
            tail = scan(reader, Mark(first, 0, 0), store.seed, index)
        if tail.torn:
            break
    gaps = index.gaps
    if not tail.torn:
        gaps.append(Gap(tail.offset, tail.offset, tail.position, copied))
    for gap in gaps:
        _compare(files, segment.path, target, gap)
    if tail.torn and copied > tail.position:
        _cut(files, target, tail.position)
        copied = tail.position
    return Copy(target, first, tail, copied, gaps)


def copy_file(files: Files, source: str, target: str, size: int | None = None, *, flush: bool = True) -> int:
    """Copy a file as long as it is now, or its first `size` bytes; how many those were."""
    with opened(files, source, size) as reader:
        fd = files.open(target, create=True, truncate=True)
        try:
            for position in range(0, reader.limit, WINDOW):
                write_whole(files, fd, reader.read(position, WINDOW), position)
            if flush:
                files.flush(fd)
        finally:
            files.close(fd)
        return reader.limit


def _cut(files: Files, path: str, size: int) -> None:
    """Take away the batch that the node was still writing."""
    fd = files.open(path)
    try:
        files.truncate(fd, size)
        files.flush(fd)
    finally:
        files.close(fd)


def _compare(files: Files, source: str, target: str, gap: Gap) -> None:
    """Bad bytes are the source's, or the copy is none."""
    with opened(files, source) as one, opened(files, target) as other:
        for position in range(gap.position, gap.stop, WINDOW):
            size = min(WINDOW, gap.stop - position)
            if one.read(position, size) != other.read(position, size):
                raise DiskFailed(f"{target} does not hold what was written to it at byte {position}")


def remove_tree(files: Files, directory: str) -> None:
    """A folder of a copy and all that is in it."""
    clear(files, directory)
    files.remove_directory(directory)


def clear(files: Files, directory: str) -> None:
    found, folders = names(files, directory)
    for name in found:
        files.unlink(f"{directory}/{name}")
    for name in folders:
        remove_tree(files, f"{directory}/{name}")
