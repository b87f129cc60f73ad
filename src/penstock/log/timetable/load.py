"""Reading a bucket on a thread: its files through descriptors of its own, what it holds sorted. Changes nothing."""

from __future__ import annotations

import errno
from array import array
from itertools import compress
from operator import not_
from typing import TYPE_CHECKING, Final

from penstock.errors import LogError
from penstock.log.disk import Disk
from penstock.log.timetable.order import by_due, due_times
from penstock.log.timetable.run import Run
from penstock.protocol.batch import positions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.log.chain import Chain
    from penstock.log.segment import Block, Segment
    from penstock.log.timetable.bucket import Bucket

_CHUNK: Final = 1 << 20
_DESCRIPTORS: Final = 4096  # no bound of its own: a split writes some hundred files at once


class View:
    """A bucket's files up to where they end now, for one thread; damage that it meets is kept to be told later."""

    def __init__(self, chain: Chain, start: int = 0) -> None:
        self.disk = Disk(chain.disk.files, limit=_DESCRIPTORS)
        self._real = chain.disk
        self.segments = [self._twin(chain, segment, start) for segment in chain.segments]

    def _twin(self, chain: Chain, segment: Segment, start: int) -> Segment:
        twin = chain.segment(segment.first)
        twin.disk = self.disk
        twin.end, twin.position = segment.end, segment.position
        if mark := segment.index.before_offset(start):
            twin.index.add(*mark)
        return twin

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """What is good from entry `start` on."""
        for segment in self.segments:
            while block := segment.read(max(start, segment.first), size):
                yield block
                start = block.next

    def close(self) -> None:
        self.disk.close_all()

    def tell(self) -> None:
        """Where the view was made: of the damage that it met."""
        for damage in self.disk.damages:
            if damage not in self._real.damages:
                self._real.damaged(damage)


def system_error(error: LogError) -> OSError:
    """What a step of work raises for it."""
    return error.__cause__ if isinstance(error.__cause__, OSError) else OSError(errno.EIO, str(error))


class Loading:
    """`run` on a thread, then `finish` or `fail`: entries from where memory ends, all of them or the next window."""

    def __init__(self, bucket: Bucket, retry: int) -> None:
        self._bucket = bucket
        self._retry = retry
        self._start = bucket.unread
        self._stop = self._reached = bucket.end
        self._window = bucket.home.limits.load if bucket.streamed else 1 << 62
        self._moved = bucket.moved
        self._view = View(bucket.chain, self._start)
        self._run = Run(b"", array("I"), array("I"), array("Q"))
        bucket.begin_loading()

    def run(self) -> None:
        try:
            self._read()
        except LogError as error:
            raise system_error(error) from error
        finally:
            self._view.close()

    def _read(self) -> None:
        source = bytearray()
        numbers = array("I")
        for block in self._view.blocks(self._start, min(self._window, _CHUNK)):
            source += block.data
            numbers.extend(range(block.first, block.next))
            if len(source) >= self._window:
                self._reached = block.next
                break
        places = positions(source, 0, len(source))
        if self._moved is not None:
            left = list(map(not_, map(self._moved.__getitem__, numbers)))
            numbers, places = array("I", compress(numbers, left)), array("I", compress(places, left))
        self._run = _sorted(source, places, numbers)

    def finish(self) -> None:
        self._view.tell()
        expected = self._reached - self._start
        if self._moved is not None:
            expected -= self._moved.count(1, self._start, self._reached)
        self._bucket.loaded(self._run, self._reached, expected - len(self._run))

    def fail(self) -> None:
        self._view.tell()
        self._bucket.not_loaded(self._retry)


def _sorted(source: bytearray, places: array[int], numbers: array[int]) -> Run:
    dues = due_times(source, places)
    order = by_due(dues)
    if order is not None:
        places = array("I", map(places.__getitem__, order))
        numbers = array("I", map(numbers.__getitem__, order))
        dues = array("Q", map(dues.__getitem__, order))
    return Run(source, places, numbers, dues)
