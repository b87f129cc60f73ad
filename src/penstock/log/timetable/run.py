"""Deferred entries in memory, in order of due time, and the slices they are given out in. Knows no file, no clock."""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from heapq import heappop, heappush, nsmallest
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.log.timetable.order import fitting
from penstock.protocol.batch import positions, record

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from penstock.log.timetable.bucket import Bucket

GRAIN: Final = 20_000_000  # ns: what was published apart is in order of due time to within this, else slices were tiny


class Run:
    """Entries in order of due time: when each is due, its number in its bucket, and where it begins in `source`."""

    __slots__ = ("_at", "dues", "numbers", "places", "source")

    def __init__(self, source: bytes | bytearray, places: array[int], numbers: array[int], dues: array[int]) -> None:
        self.source = source
        self.places = places
        self.numbers = numbers
        self.dues = dues
        self._at = 0  # how many are gone

    def __len__(self) -> int:
        return len(self.dues) - self._at

    @property
    def head(self) -> int:
        """When the first one is due."""
        return self.dues[self._at]

    def left(self, limit: int) -> array[int]:
        """The places of the first ones."""
        return self.places[self._at : self._at + limit]

    def cut(self, until: int, room: int) -> Run:
        """Take the first ones that are due by `until` and fit `room` bytes; one at least must be due."""
        at = self._at
        stop = bisect_right(self.dues, until, at)
        stop, _ = fitting(self.source, self.places, at, stop, room)
        self._at = stop
        return Run(self.source, self.places[at:stop], self.numbers[at:stop], self.dues[at:stop])


class Entry(NamedTuple):
    """One deferred message, for people to look at."""

    due: int
    timestamp: int
    body: bytes


def entry(source: Buffer, place: int) -> Entry:
    """The entry that begins there."""
    found = record(source, place, 0)
    return Entry(int(found.id, 16), found.timestamp, found.body)


class Slice:
    """Entries of one bucket that are due, in order: to be one batch of the topic's log.

    Its records are those that begin at `places` in `source`; their id fields are to be replaced.
    """

    __slots__ = ("bucket", "run", "size")

    def __init__(self, bucket: Bucket, run: Run) -> None:
        self.bucket = bucket
        self.run = run
        self.size = fitting(run.source, run.places, 0, len(run.places), 1 << 62)[1]  # bytes of the records

    def __len__(self) -> int:
        return len(self.run)

    @property
    def source(self) -> bytes | bytearray:
        return self.run.source

    @property
    def places(self) -> array[int]:
        return self.run.places

    @property
    def numbers(self) -> array[int]:
        return self.run.numbers

    @property
    def key(self) -> bytes:
        """The key of the batch that they become: it makes the move happen once."""
        return pack(self.bucket.name.serial, self.run.numbers)


def pack(serial: int, numbers: array[int]) -> bytes:
    """A bucket's serial number (u64) and numbers of its entries (u32 each)."""
    numbers = numbers[:]
    if sys.byteorder == "little":
        numbers.byteswap()
    return serial.to_bytes(8, "big") + numbers.tobytes()


def unpack(key: bytes) -> tuple[int, array[int]]:
    """The serial number and the entries; (0, none) where it is no such key."""
    numbers = array("I")
    if len(key) < 8 or len(key) % 4:
        return 0, numbers
    numbers.frombytes(key[8:])
    if sys.byteorder == "little":
        numbers.byteswap()
    return int.from_bytes(key[:8], "big"), numbers


class Memory:
    """What of a bucket is in memory: what was read from its file, and what joined it since then."""

    __slots__ = ("_joined", "_joined_bytes", "runs")

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self._joined: list[tuple[int, int, int, bytearray]] = []  # a heap of (due, first number, count, batch)
        self._joined_bytes = 0

    @property
    def size(self) -> int:
        """In bytes, of what it holds."""
        return sum(len(run.source) for run in self.runs) + self._joined_bytes

    @property
    def head(self) -> int | None:
        """When the first entry is due that nobody has."""
        heads = [run.head for run in self.runs]
        if self._joined:
            heads.append(self._joined[0][0])
        return min(heads, default=None)

    def entries(self, limit: int) -> list[Entry]:
        """Some that nobody has, the first ones among them, in order of due time."""
        found = [entry(run.source, place) for run in self.runs for place in run.left(limit)]
        for *_, batch in nsmallest(limit, self._joined):
            found += [entry(batch, place) for place in positions(batch, 0, len(batch))[:limit]]
        return sorted(found)[:limit]

    def join(self, due: int, first: int, count: int, batch: bytearray) -> None:
        """Add a batch whose entries are all due then."""
        heappush(self._joined, (due, first, count, batch))
        self._joined_bytes += len(batch)

    def add(self, run: Run) -> None:
        if run:
            self.runs.append(run)

    def put_back(self, run: Run) -> None:
        """What was taken: it comes before what is due at the same time."""
        self.runs.insert(0, run)

    def take(self, until: int, room: int) -> Run:
        """The first entries that are due by `until` and fit `room` bytes; one at least must be due."""
        if self._joined and all(self._joined[0][0] < run.head for run in self.runs):
            self.runs.append(self._ripen(min([until, *(run.head + GRAIN for run in self.runs)]), room))
        best = min(self.runs, key=lambda run: run.head)
        others = [run.head for run in self.runs if run is not best]
        if self._joined:
            others.append(self._joined[0][0])
        taken = best.cut(min([until, *(head + GRAIN for head in others)]), room)
        if not best:
            self.runs.remove(best)
        return taken

    def _ripen(self, until: int, room: int) -> Run:
        """What joined and is due by then, about as much as fits `room` bytes."""
        batches: list[bytearray] = []
        numbers, dues = array("I"), array("Q")
        size = 0
        while self._joined and self._joined[0][0] <= until and (not batches or size < room):
            due, first, count, batch = heappop(self._joined)
            batches.append(batch)
            size += len(batch)
            numbers.extend(range(first, first + count))
            dues.extend(array("Q", [due]) * count)
        self._joined_bytes -= size
        source = batches[0] if len(batches) == 1 else b"".join(batches)
        return Run(source, positions(source, 0, len(source)), numbers, dues)
