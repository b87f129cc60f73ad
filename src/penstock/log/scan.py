"""Going through a file of batches from a known place: checking, marking, finding what is good behind what is bad.

Knows an open file and a seed; decides nothing about what it finds.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.log.index import STEP, Gap, Index, Mark
from penstock.protocol.batch import BAD, HEADER, INCOMPLETE, MAGIC, Header, check, first_at, header, length_at, walk

if TYPE_CHECKING:
    from penstock.log.files import Files

WINDOW: Final = 1 << 20
_PAGE: Final = 4096


class Reader:
    """Reads of one open file up to a limit; a page that the device will not give reads as zeros, and is counted."""

    def __init__(self, files: Files, fd: int, limit: int) -> None:
        self.files = files
        self.fd = fd
        self.limit = limit
        self.unreadable = 0

    def read(self, position: int, size: int) -> bytes:
        size = min(size, self.limit - position)
        if size <= 0:
            return b""
        try:
            return self.files.read(self.fd, size, position)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
        end = position + size
        pages = range(position - position % _PAGE, end, _PAGE)
        return b"".join(self._page(max(at, position), min(at + _PAGE, end) - max(at, position)) for at in pages)

    def _page(self, position: int, size: int) -> bytes:
        try:
            return self.files.read(self.fd, size, position)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            self.unreadable += 1
            return bytes(size)

    def must_have_all(self) -> None:
        """An error where anything could not be read: what was made of zeros may be wrong, and the error may pass."""
        if self.unreadable:
            raise OSError(errno.EIO, "the device does not give all bytes")

    def batch(self, position: int, seed: int) -> tuple[Header, bytes] | None:
        """The whole good batch that begins at `position`."""
        data = self.read(position, _PAGE)
        length = length_at(data, 0)
        if length <= 0 or length > self.limit - position:
            return None
        if length > len(data):
            data = self.read(position, length)
        if check(data, 0, seed) <= 0:
            return None
        return header(data), data[:length]


def find_good(reader: Reader, position: int, expected: int, seed: int) -> tuple[int, int] | None:
    """Where, from `position` on, the next good batch begins that can follow `expected`, and its first offset."""
    while position < reader.limit:
        data = reader.read(position, WINDOW)
        if not data:
            break
        at = data.find(MAGIC)
        while at >= 0:
            if _may_follow(data, at, expected) and (found := reader.batch(position + at, seed)):
                if found[0].first >= expected:
                    return position + at, found[0].first
            at = data.find(MAGIC, at + 1)
        position += max(1, len(data) - len(MAGIC) + 1)
    return None


def _may_follow(data: bytes, at: int, expected: int) -> bool:
    """Whether it is worth a look from nearer: the header, as far as it is here, is none that cannot be."""
    length = length_at(data, at)
    return length != BAD and (length == INCOMPLETE or first_at(data, at) >= expected)


class Tail(NamedTuple):
    """How a file of batches ends: behind `position`, where `offset` was expected, nothing good follows."""

    position: int
    offset: int
    time: int  # of the last good batch
    torn: bool  # what is there is the beginning of a batch, or zeros, or nothing


def scan(reader: Reader, start: Mark, seed: int, index: Index, keyed: list[bytes] | None = None) -> Tail:
    """Check every batch from `start` on, adding marks and gaps to `index`, and the headers with a key to `keyed`."""
    expected, time, position = start
    window = WINDOW
    while True:
        data = reader.read(position, window)
        at = 0
        why = INCOMPLETE
        while at < len(data):
            places: list[int] = []
            stop, expected_next, last, why = walk(data, at, seed, expected, STEP, places)
            if last >= 0:
                if not index.positions or position + at - index.positions[-1] >= STEP:
                    index.add(expected, header(data, at).appended, position + at)
                time = header(data, last).appended
                if keyed is not None:
                    keyed += [data[place : header(data, place).payload] for place in places]
            at, expected = stop, expected_next
            if why != 1:
                break
        position += at
        if position >= reader.limit:
            return Tail(position, expected, time, True)
        rest = data[at : at + HEADER]
        length = length_at(rest, 0) if why != BAD else BAD
        if why != BAD and at and len(data) == window:
            window = max(WINDOW, length)  # the data ended, not the file
        elif why != BAD and window < length <= reader.limit - position:
            window = length
        elif good := find_good(reader, position, expected, seed):
            gap = Gap(expected, good[1], position, good[0])
            index.gaps.append(gap)
            position, expected = good
            window = WINDOW
            found = reader.batch(position, seed)
            index.add(expected, found[0].appended if found else time, position)
        else:
            return Tail(position, expected, time, is_torn(reader, position, why, seed))


def is_torn(reader: Reader, position: int, why: int, seed: int) -> bool:
    """Whether what ends the file is the beginning of a batch, or zeros: it was never answered. `why` is `walk`'s."""
    return _only_zeros(reader, position) if why == BAD else not _lacks_nothing(reader, position, seed)


def _lacks_nothing(reader: Reader, position: int, seed: int) -> bool:
    """Whether the last batch is whole, and only its length says that there should be more of it."""
    data = reader.read(position, reader.limit - position)
    if len(data) < HEADER:
        return False
    return check(data[:4] + (len(data) - 12).to_bytes(4, "big") + data[8:], 0, seed) > 0


def _only_zeros(reader: Reader, position: int) -> bool:
    """Whether nothing but zeros follows: what a file system leaves of writes that a power cut took."""
    while data := reader.read(position, WINDOW):
        if data.count(0) != len(data):
            return False
        position += len(data)
    return True
