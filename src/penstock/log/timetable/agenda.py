"""The agenda: which bucket a thread has to load or split next, and when. Knows no thread and no clock."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from penstock.log.timetable.bucket import SECOND

if TYPE_CHECKING:
    from penstock.log.timetable.bucket import Bucket

LEAD: Final = 600_000_000  # ns: how long before its first due time a bucket is loaded,
_PER_BYTE: Final = 30  # and how much earlier for each byte it is split
_SLACK: Final = SECOND // 20  # a bucket that grows is not put down again for less


class Agenda:
    """Two heaps, by time; a bucket stands in one of them, and `bucket.noted` says at which time."""

    __slots__ = ("_loads", "_splits")

    def __init__(self) -> None:
        self._loads: list[tuple[int, int, Bucket]] = []
        self._splits: list[tuple[int, int, Bucket]] = []

    def __bool__(self) -> bool:
        """There may be something on it."""
        return bool(self._loads or self._splits)

    def add(self, bucket: Bucket) -> None:
        """Put down what is to be done with it, if anything; again whenever that may have changed."""
        if not bucket.waits:
            bucket.noted = None
            return
        split = bucket.to_split
        if split:
            time = max(bucket.earliest - LEAD - bucket.size * _PER_BYTE, bucket.not_before)
        else:
            time = max(bucket.earliest, bucket.not_before + LEAD)
        if bucket.noted is not None and bucket.noted[0] == split and time > bucket.noted[1] - split * _SLACK:
            return
        bucket.noted = (split, time)
        heappush(self._splits if split else self._loads, (time, bucket.name.serial, bucket))

    def load(self) -> tuple[int, Bucket] | None:
        """The bucket to be loaded next, and when something of it is due."""
        return self._first(self._loads, False)

    def split(self) -> tuple[int, Bucket] | None:
        """The bucket to be split next, and when to begin with it."""
        return self._first(self._splits, True)

    @staticmethod
    def _first(heap: list[tuple[int, int, Bucket]], split: bool) -> tuple[int, Bucket] | None:
        while heap:
            time, _, bucket = heap[0]
            if bucket.noted == (split, time):
                return time, bucket
            heappop(heap)
        return None
