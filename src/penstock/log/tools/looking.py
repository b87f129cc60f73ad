"""Going through files of batches without touching them: a node may run on them, a disk may be failing under them.

A file is told as stretches, in order: runs of good batches, gaps where bytes are bad, and how it ends. What follows
what is decided exactly as recovery does.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from penstock.errors import log_error
from penstock.log.index import Gap, Mark
from penstock.log.scan import WINDOW, Reader, find_good, is_torn
from penstock.protocol.batch import BAD, HEADER, MAGIC, header, length_at, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.log.files import Files


class Run(NamedTuple):
    """Good batches, one behind the other, from byte `position` of the file."""

    position: int
    first: int
    next: int
    time: int  # of the last one
    data: memoryview

    @property
    def stop(self) -> int:
        return self.position + len(self.data)


class End(NamedTuple):
    """Behind `position`, where `offset` was expected, nothing good follows in a file of `size` bytes."""

    position: int
    offset: int
    torn: bool  # what is there is the beginning of a batch, or zeros, or nothing: no damage
    size: int
    unreadable: bool  # there were pages that the device did not give, and that were taken for zeros


Stretch: TypeAlias = Run | Gap | End


def damage_in(stretch: Gap | End) -> Gap | None:
    """What is bad, where something is."""
    if isinstance(stretch, Gap):
        return stretch
    return None if stretch.torn else Gap(stretch.offset, stretch.offset, stretch.position, stretch.size)


_LOOKS: Final = 3


@contextmanager
def opened(files: Files, path: str, limit: int | None = None) -> Iterator[Reader]:
    """A reader of the file as long as it is now, or up to `limit`; FileNotFoundError where it has gone meanwhile."""
    try:
        fd = files.open(path, read_only=True)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise log_error(error, f"opening {path}") from error
    try:
        yield Reader(files, fd, files.size(fd) if limit is None else limit)
    finally:
        files.close(fd)


def read_file(files: Files, path: str) -> bytes | None:
    """All of a small file; None where there is none."""
    try:
        with opened(files, path) as reader:
            return reader.read(0, reader.limit)
    except FileNotFoundError:
        return None


def names(files: Files, directory: str) -> tuple[list[str], list[str]]:
    """The names of files and of folders in a directory, sorted; none where it is missing."""
    try:
        entries = sorted(files.list(directory))
    except FileNotFoundError:
        return [], []
    except OSError as error:
        raise log_error(error, f"listing {directory}") from error
    return [name for name, folder in entries if not folder], [name for name, folder in entries if folder]


def stretches(files: Files, path: str, first: int | None, seed: int, start: Mark | None = None) -> Iterator[Stretch]:
    """What the file holds, where a batch that begins with `first` (or any) should stand at its start; last its End.

    With `start`, from there, if a good batch stands there. What looks bad is looked at again before it is told: a
    running node may have been writing it. FileNotFoundError where the file has gone.
    """
    with opened(files, path) as reader:
        position, expected = _begin(reader, first, seed, start)
        looks = 0
        while True:
            for stretch in from_position(reader, expected, seed, position):
                if not isinstance(stretch, Run) and looks < _LOOKS and not (isinstance(stretch, End) and stretch.torn):
                    looks += 1
                    reader.limit = files.size(reader.fd)
                    break
                yield stretch
                if isinstance(stretch, End):
                    return
                position, expected, looks = stretch.stop, stretch.next, 0


def _begin(reader: Reader, first: int | None, seed: int, start: Mark | None) -> tuple[int, int]:
    if start is not None and (found := reader.batch(start.position, seed)) and found[0].first == start.offset:
        return start.position, start.offset
    if first is None and (good := find_good(reader, 0, 0, seed)):
        return 0, good[1]
    return 0, first or 0


def from_position(reader: Reader, first: int, seed: int, position: int) -> Iterator[Stretch]:
    """What the file holds from `position` on, where a batch that begins with `first` should stand; last its End."""
    expected = first
    window = WINDOW
    while True:
        data = reader.read(position, window)
        stop, next_, last, why = walk(data, 0, seed, expected, len(data) + 1)
        if stop:
            yield Run(position, expected, next_, header(data, last).appended, memoryview(data)[:stop])
            position, expected, window = position + stop, next_, WINDOW
        elif position >= reader.limit:
            yield End(position, expected, True, reader.limit, reader.unreadable > 0)
            return
        elif why != BAD and window < (length := length_at(data, 0)) <= reader.limit - position:
            window = length
        elif good := find_good(reader, position, expected, seed):
            yield Gap(expected, good[1], position, good[0])
            position, expected = good
        else:
            torn = is_torn(reader, position, why, seed)
            yield End(position, expected, torn, reader.limit, reader.unreadable > 0)
            return


def likely_batches(reader: Reader, position: int = 0) -> Iterator[tuple[int, bytes]]:
    """Where the header of a batch stands that the file could hold, and those bytes: one that is good, or was."""
    while position < reader.limit:
        window = reader.read(position, WINDOW)
        at = window.find(MAGIC)
        while at >= 0:
            length = length_at(reader.read(position + at, HEADER), 0) or 0
            if 0 < length <= reader.limit - position - at:
                yield position + at, reader.read(position + at, length)
            at = window.find(MAGIC, at + 1)
        position += max(1, len(window) - len(MAGIC) + 1)
