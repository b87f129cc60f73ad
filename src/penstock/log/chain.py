# cython: annotation_typing=False
"""The segments of one log, in order: rolling, reading across them, deleting from the front. Knows no topic.

What lies between the end of a segment and the first offset of the next is a hole: nobody gets it, readers are told.
Where the next one begins before a segment's end (its end was copied to a new file after a failed flush), the next
one is right.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.errors import LogError, log_error
from penstock.log.segment import Block, Segment
from penstock.protocol.batch import MAX_ID

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Buffer

    from penstock.log.disk import Disk
    from penstock.log.work import Work

SUFFIX: Final = ".log"
INDEX: Final = ".index"
_LOADED: Final = 4  # sealed segments whose index is kept in memory


class Hole(NamedTuple):
    """Offsets `[first, next)` that hold nothing, and why."""

    first: int
    next: int
    why: str  # "lost", "damaged", "emptied"


class Chain:
    """Segments by first offset; the last one takes the batches."""

    __slots__ = (
        "_firsts", "_loaded", "_unsettled", "directory", "directory_dirty", "disk", "index_from", "max_bytes", "prefix",
        "seed", "segments",
    )  # fmt: skip

    def __init__(self, disk: Disk, directory: str, seed: int, max_bytes: int, prefix: str = "") -> None:
        self.disk = disk
        self.directory = directory
        self.seed = seed
        self.max_bytes = max_bytes
        self.prefix = prefix  # of its files' names, where the directory is not its own
        self.index_from = 0  # bytes: no index is written for smaller segments
        self.segments: list[Segment] = []
        self.directory_dirty = False  # files were created whose names a power cut could still take
        self._firsts: list[int] = []
        self._loaded: list[Segment] = []
        self._unsettled: list[int] = []  # where batches begin that a recovery has to find, ascending

    def recover(self, earliest: int) -> list[int]:
        """Find the segments in the directory; those wholly below `earliest` were meant to be deleted, and are.

        Answers where files behind them began that are gone, while their indexes are not.
        """
        try:
            names = sorted(name for name, folder in self.disk.files.list(self.directory) if not folder)
        except OSError as error:
            raise log_error(error, f"listing {self.directory}") from error
        firsts = [first for name in names if (first := _first_of(name)) is not None]
        number = max(0, bisect_right(firsts, earliest) - 1)
        self._finish_deleting(firsts[:number])
        self.recover_segments(firsts[number:])
        self.directory_dirty = bool(self.dirty())  # a process that was killed may not have flushed their names
        last = self.segments[-1].first if self.segments else -1
        return [first for name in names if (first := _first_of(name, INDEX)) is not None and first > last]

    def recover_lost(self, first: int) -> None:
        """The file that began there is gone, which an index outlives by no other way: as if it were empty now."""
        self.segment(first).open(create=True)
        self.recover_segments([first])

    def _finish_deleting(self, firsts: list[int]) -> None:
        """Once it is sure that they are not wanted: a killed process may have written so and not come to flush it."""
        with contextlib.suppress(OSError):  # then they only take room
            if firsts:
                self.disk.files.flush_directory(self.directory)
            for first in firsts:
                _unlink(self.disk, self.segment(first))

    def recover_segments(self, firsts: list[int]) -> None:
        """Find what these segments hold."""
        for first in firsts:
            segment = self.segment(first)
            segment.recover()
            if self.segments:
                self._close_before(first)
            self._add(segment)

    def _close_before(self, first: int) -> None:
        """The last segment ends where the next begins, or earlier."""
        last = self.segments[-1]
        last.closed = True
        if last.end > first:
            last.cut_view(first)
        last.forget_index()

    def segment(self, first: int) -> Segment:
        """A segment of this chain by its first offset, in no chain yet."""
        return Segment(self.disk, self.directory, first, self.seed, self.prefix)

    def _add(self, segment: Segment) -> None:
        self.segments.append(segment)
        self._firsts.append(segment.first)

    def first(self, end: int) -> int:
        """The first offset that is kept, `end` where there is none."""
        return self._firsts[0] if self._firsts else end

    def flushed_end(self, end: int) -> int:
        """Up to which offset all is known to be on the device."""
        return next((segment.flushed_end for segment in self.dirty()), end)

    def warm(self, work: Work, offset: int, size: int) -> None:
        """Add a step that reads the bytes at `offset`, so that the page cache has them."""
        number = max(0, bisect_right(self._firsts, offset) - 1)
        if number < len(self.segments):
            self.segments[number].warm(work, offset, size)

    def close(self) -> None:
        for segment in self.segments:
            self.disk.close(segment.path)
            self.disk.close(segment.index_path)

    @property
    def bytes(self) -> int:
        return sum(segment.position for segment in self.segments)

    def append(self, batch: Buffer, first: int, count: int, time: int) -> None:
        """Write a batch behind the last one, in a new segment where it does not fit or does not follow."""
        segment = self._segment_for(first, memoryview(batch).nbytes)
        try:
            segment.append(batch, count, time)
        except LogError:
            self._forget_unused(segment)
            raise
        self._adopt(segment)

    def append_apart(self, batch: Buffer, first: int, count: int, time: int) -> Work:
        """As `append`, on a thread; nothing else is appended until that is through."""
        segment = self._segment_for(first, memoryview(batch).nbytes)
        work = segment.append_apart(batch, count, time)
        work.then(lambda: self._adopt(segment))
        work.otherwise(lambda _error: self._forget_unused(segment))
        return work

    def _segment_for(self, first: int, size: int) -> Segment:
        """The last one where the batch fits and follows, else a new one, which is in the chain once it holds it."""
        last = self.segments[-1] if self.segments else None
        if last is not None and not last.closed and last.end == first and last.position + size <= self.max_bytes:
            return last
        if last is not None and not last.position and last.first == first and not last.tail_bad:
            last.closed = False  # nothing stands in it yet, whatever its size
            return last
        self.roll()  # first: were this to fail, an empty new file would hide what the old one takes next
        self.directory_dirty = True
        return self.segment(first)

    def _adopt(self, segment: Segment) -> None:
        if not self.segments or segment is not self.segments[-1]:
            self._add(segment)

    def _forget_unused(self, segment: Segment) -> None:
        """Nobody else knows of a new one whose first batch failed."""
        if not self.segments or segment is not self.segments[-1]:
            self.disk.close(segment.path)

    def roll(self) -> None:
        """The last segment takes no more batches."""
        if self.segments:
            last = self.segments[-1]
            last.closed = True
            if not last.dirty:
                self._index_flushed(last, last.position)

    def read(self, offset: int, size: int, *, now: bool = False) -> Block | None:
        """Whole batches from the one that holds `offset`, or the first one behind it; None at the end."""
        for number in range(max(0, bisect_right(self._firsts, offset) - 1), len(self.segments)):
            segment = self.segments[number]
            if block := segment.read(max(offset, segment.first), size, now=now):
                self._keep_loaded(segment)
                return block
        return None

    def _keep_loaded(self, segment: Segment) -> None:
        """Indexes are read from their files when they are needed, and few are kept."""
        if not segment.closed or segment in self._loaded:
            return
        self._loaded.append(segment)
        if len(self._loaded) > _LOADED:
            self._loaded.pop(0).forget_index()

    def reach(self, offset: int, size: int, end: int) -> int:
        """Where a batch begins that is about `size` bytes behind `offset`; `end` where there are not so many."""
        for number in range(max(0, bisect_right(self._firsts, offset) - 1), len(self.segments)):
            segment = self.segments[number]
            reached, size = segment.reach(max(offset, segment.first), size)
            self._keep_loaded(segment)
            if reached < segment.end:
                return reached
        return end

    def at_time(self, time: int) -> int | None:
        """The first offset of the first batch appended at `time` or later."""
        segment = self._of_time(time)
        return segment.at_time(time) if segment else None

    def near(self, time: int) -> int | None:
        """The offset from which on `at_time` looks."""
        segment = self._of_time(time)
        return segment.near(time) if segment else None

    def _of_time(self, time: int) -> Segment | None:
        return next((each for each in self.segments if each.position and each.last_time >= time), None)

    def holes(self, first: int, end: int) -> Iterator[Hole]:
        """What `[first, end)` lacks because it was lost or is damaged, as far as it has been met."""
        expected = first
        for segment in self.segments:
            if segment.first > expected:
                yield from _clip(Hole(expected, segment.first, "lost"), first, end)
            if segment.first < end and segment.end > first:
                for gap in segment.gaps:
                    yield from _clip(Hole(gap.first, gap.next, "damaged"), first, end)
            expected = max(expected, segment.end)
        yield from _clip(Hole(expected, end, "lost"), first, end)

    def dirty(self) -> list[Segment]:
        return [segment for segment in self.segments if segment.dirty]

    def flush(self, work: Work, end: int = 0, *, at_most: int | None = None) -> int:
        """Add the flush of what is dirty, oldest first: what is newer never counts as flushed before it.

        With `at_most`, of so many segments, as each needs a descriptor until the work is done. Answers up to where all
        is flushed then: `end` where that is all.
        """
        dirty = self.dirty()
        try:
            for segment in dirty[:at_most]:
                self._flush_segment(work, segment)
        except LogError:
            work.drop()
            raise
        if self.directory_dirty:
            self.directory_dirty = False
            work.step(lambda: self.disk.files.flush_directory(self.directory))
            work.otherwise(self._directory_not_flushed)
        left = dirty[at_most:] if at_most is not None else []
        return left[0].flushed_end if left else end

    def _flush_segment(self, work: Work, segment: Segment) -> None:
        file, position = segment.open(), segment.position
        file.pins += 1

        def done() -> None:
            file.pins -= 1
            self._index_flushed(segment, position)

        def failed(_error: OSError) -> None:
            file.pins -= 1

        work.step(lambda: self.disk.flush(file))
        work.then(done)
        work.otherwise(failed)

    def _index_flushed(self, segment: Segment, position: int) -> None:
        """The segment is on the device up to `position`: so may its index be, and where it is sealed, out of memory."""
        entries = segment.flushed_to(position, self.settled)
        if segment.position >= self.index_from:
            segment.write_index(entries)
        self._keep_loaded(segment)

    def _directory_not_flushed(self, _error: OSError) -> None:
        self.directory_dirty = True

    def mark_end(self) -> None:
        """For a clean stop, after the flush: the next start need not read what it need not find."""
        for segment in self.segments[-1:]:
            segment.mark_end(self.settled)

    # --- batches that only these files know of

    @property
    def settled(self) -> int:
        """The offset behind which no index mark may stand."""
        return self._unsettled[0] if self._unsettled else MAX_ID

    def unsettle(self, first: int) -> None:
        """A recovery has to find the batch that begins there."""
        self._unsettled.append(first)

    def settle(self, end: int) -> None:
        """No recovery has to find what begins below `end`: the marks may be written that waited for that."""
        first = self.settled
        del self._unsettled[: bisect_left(self._unsettled, end)]
        if first < end:
            for segment in self.segments[max(0, bisect_right(self._firsts, first) - 1) :]:
                self._index_flushed(segment, segment.flushed)

    def kept_from(self, offset: int) -> int:
        """Where the first segment begins that does not lie wholly below `offset`; 0 where that is above it."""
        number = bisect_right(self._firsts, offset) - 1
        return self._firsts[number] if number >= 0 else 0

    def drop(self, offset: int) -> list[Segment]:
        """Forget the segments that lie wholly below `offset`, not the last; their files are the caller's to unlink."""
        number = max(0, bisect_right(self._firsts, offset) - 1)
        dropped = self.segments[:number]
        del self.segments[:number], self._firsts[:number]
        return dropped

    def replace(self, old: Segment, new: Segment) -> None:
        """`new` holds what `old` had from `new.first` on."""
        if old not in self.segments:  # deleted meanwhile
            _unlink(self.disk, new)
            return
        number = self.segments.index(old)
        if new.first == old.first:
            self.segments[number] = new
        else:
            old.closed = True
            self.segments.insert(number + 1, new)
            self._firsts.insert(number + 1, new.first)


def unlink_steps(work: Work, disk: Disk, dropped: list[Segment]) -> None:
    """Oldest first, so that what a kill leaves is never the front alone."""
    for segment in dropped:
        disk.close(segment.path)
        disk.close(segment.index_path)
        work.step(lambda segment=segment: _unlink(disk, segment))  # type: ignore[misc]


def _unlink(disk: Disk, segment: Segment) -> None:
    for path in (segment.index_path, segment.path):
        with contextlib.suppress(FileNotFoundError):
            disk.files.unlink(path)


def _first_of(name: str, suffix: str = SUFFIX) -> int | None:
    """The first offset in a segment's file name."""
    digits = name.removesuffix(suffix)
    if len(name) != 20 + len(suffix) or len(digits) != 20 or not (digits.isascii() and digits.isdecimal()):
        return None
    first = int(digits)
    return first if first <= MAX_ID else None


def _clip(hole: Hole, first: int, end: int) -> Iterator[Hole]:
    low, high = max(hole.first, first), min(hole.next, end)
    if low < high:
        yield Hole(low, high, hole.why)
