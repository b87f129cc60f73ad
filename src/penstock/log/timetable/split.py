"""Splitting a bucket: dealing a large one out to narrower ones, on a thread, never holding it whole.

    parent   [start ------------------------------- stop)      too large to be loaded
    children [----)[--)[-)[)[---------)[-----------------)     about equal in bytes, by a sample of its due times

The children are whole on the device before the parent is unlinked: that is when they begin to count. A time at which
very much is due becomes a bucket of its own, one nanosecond wide, which is not split again.
"""

from __future__ import annotations

import contextlib
from array import array
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING, Final

from penstock.errors import LogError
from penstock.log.timetable.bucket import Bucket, Name, unlink
from penstock.log.timetable.load import View, system_error
from penstock.log.timetable.order import deal, due_times, fitting
from penstock.protocol.batch import HEADER, length_at, positions, put_moved, seal

if TYPE_CHECKING:
    from penstock.log.segment import Block

RANGES: Final = 128  # at most, and as many again for times at which very much is due
_SAMPLES: Final = 1024


class Split:
    """`run` on a thread, then `finish` or `fail`; of one bucket that takes no more entries."""

    def __init__(self, parent: Bucket, serial: int, now: int) -> None:
        """Children are numbered from `serial` on, at most 2 * RANGES of them."""
        self._parent = parent
        self._serial = serial
        self._now = now
        self._view = View(parent.chain)
        self._places = [_spread(segment.index.positions) for segment in parent.chain.segments]
        self._bounds = array("Q")
        self._children: dict[int, Bucket] = {}  # by the number of their range
        self._count = 0
        self.over = False  # the parent is gone
        self.spent: list[int] = []  # its descriptors

    # --- on a thread

    def run(self) -> None:
        try:
            unlink(self._view.disk.files, self._parent.litter)
            self._bounds = _bounds(self._sample(), self._parent)
            for block in self._view.blocks(0, self._parent.home.limits.load):
                self._deal(block)
            self._flush()
            self._end_parent()
        except OSError:
            self._undo()
            raise
        except LogError as error:
            self._undo()
            raise system_error(error) from error
        finally:
            self._view.close()

    def _sample(self) -> list[int]:
        """The due time of the first entry of some batches, sorted."""
        found = []
        for segment, places in zip(self._view.segments, self._places, strict=True):
            for place in places:
                data = self._view.disk.files.read(segment.open().fd, 4096, place)
                if length_at(data, 0) > 0:
                    at = HEADER + int.from_bytes(data[36:40], "big")
                    with contextlib.suppress(ValueError):
                        found.append(int(data[at + 14 : at + 30], 16))
        return sorted(found)

    def _deal(self, block: Block) -> None:
        places = positions(block.data, 0, len(block.data))
        dealt, ends = deal(due_times(block.data, places), places, self._bounds)
        self._count += len(places)
        for number, (start, stop) in enumerate(pairwise([0, *ends])):
            if start < stop:
                self._append(number, block, dealt[start:stop])

    def _append(self, number: int, block: Block, places: array[int]) -> None:
        child = self._children.get(number) or self._make(number)
        _, size = fitting(block.data, places, 0, len(places), 1 << 62)
        batch = bytearray(HEADER + size)
        put_moved(batch, HEADER, block.data, places, 0)
        seal(batch, 0, len(batch), child.end, len(places), self._now, 0, 0, child.chain.seed)
        child.chain.append(batch, child.end, len(places), self._now)
        child.end += len(places)
        child.count += len(places)

    def _make(self, number: int) -> Bucket:
        parent = self._parent
        edges = [parent.name.start, *self._bounds, parent.stop]
        start, stop = edges[number : number + 2]
        name = Name(start, stop - start, self._serial + number, parent.name.serial)
        child = Bucket(parent.home._replace(disk=self._view.disk), name)
        child.closed = True
        child.earliest = max(start, parent.earliest) if number else parent.earliest
        self._children[number] = child
        return child

    def _flush(self) -> None:
        for child in self._children.values():
            child.chain.roll()
            for segment in child.chain.segments:
                self._view.disk.flush(segment.open())
                entries = segment.flushed_to(segment.position)
                if segment.position >= child.chain.index_from:
                    segment.write_index(entries)
            child.chain.directory_dirty = False
        self._view.disk.files.flush_directory(self._parent.home.directory)

    def _end_parent(self) -> None:
        if not all(damage.copy for damage in self._view.disk.damages):
            raise OSError("what is damaged cannot be set aside")
        files = self._view.disk.files
        for segment in self._parent.chain.segments:  # the last one closed takes the pages with it: not on the loop
            self.spent.append(files.open(segment.path, read_only=True))
        self._parent.unlink_first()
        self.over = True
        files.flush_directory(self._parent.home.directory)
        self._parent.unlink_rest()

    def _undo(self) -> None:
        """Nothing of the children may be left when the parent goes one day."""
        if self.over:
            return
        self._view.close()
        self.spent, spent = [], self.spent
        for fd in spent:
            with contextlib.suppress(OSError):  # the descriptor is gone
                self._view.disk.files.close(fd)
        left = []
        for child in self._children.values():
            for segment in child.chain.segments or [child.chain.segment(0)]:
                left += [segment.path, segment.index_path]
        self._parent.litter += left
        with contextlib.suppress(OSError):
            unlink(self._view.disk.files, self._parent.litter)
            self._parent.litter = []

    # --- where it was made

    def finish(self) -> list[Bucket]:
        """The parent is gone: the children."""
        self._view.tell()
        for child in self._children.values():
            child.adopt(self._parent.home)
        return list(self._children.values())

    def fail(self) -> None:
        self._view.tell()


def _spread(places: array[int]) -> list[int]:
    """At most _SAMPLES of them, evenly."""
    step = ceil(len(places) / _SAMPLES) or 1
    return list(places[::step])


def _bounds(samples: list[int], parent: Bucket) -> array[int]:
    """What divides the parent into ranges of about equal bytes, a time with more than a range's share being its own."""
    ranges = max(2, min(RANGES, ceil(2 * parent.loads)))
    first, last = parent.name.start, parent.stop - 1
    samples = [min(max(due, first), last) for due in samples]  # what was put late is due before the bucket begins
    bounds = set()
    for number in range(1, ranges):
        if not samples:
            bounds.add(first + parent.name.width * number // ranges)
            continue
        due = samples[len(samples) * number // ranges]
        bounds.add(due)
        if samples.count(due) * ranges >= len(samples):
            bounds.add(due + 1)
    return array("Q", sorted(bound for bound in bounds if first < bound <= last))
