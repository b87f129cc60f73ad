"""When things want to be looked at: one heap for all of them. Knows no clock, and nothing of the things."""

from __future__ import annotations

import heapq
from typing import Final, Generic, TypeVar

NEVER: Final = (1 << 63) - 1
_VOID: Final = 64  # alarms that are void, beside as many as are not, before the heap is made anew

Thing = TypeVar("Thing")


class Alarms(Generic[Thing]):
    """Each thing has one alarm, its earliest; what is set later than that is void, for it will be set again."""

    __slots__ = ("_at", "_count", "_heap", "next")

    def __init__(self) -> None:
        self._at: dict[Thing, int] = {}
        self._heap: list[tuple[int, int, Thing]] = []
        self._count = 0  # so that things are never compared
        self.next = NEVER  # when the next one rings; perhaps a little before

    def set(self, thing: Thing, when: int) -> None:
        if when < self._at.get(thing, NEVER):
            self._at[thing] = when
            self._count += 1
            heapq.heappush(self._heap, (when, self._count, thing))
            self.next = min(self.next, when)
            self._tidy()

    def drop(self, thing: Thing) -> None:
        """It wants nothing any more."""
        self._at.pop(thing, None)
        self._tidy()

    def _tidy(self) -> None:
        """What is void is not kept until its time, which may be hours away."""
        if len(self._heap) > 2 * len(self._at) + _VOID:
            self._heap = [alarm for alarm in self._heap if self._at.get(alarm[2]) == alarm[0]]
            heapq.heapify(self._heap)

    def ring(self, now: int, limit: int = NEVER) -> list[Thing]:
        """Those whose time has come, at most so many; their alarms are off."""
        found: list[Thing] = []
        while self._heap and self._heap[0][0] <= now and len(found) < limit:
            when, _, thing = heapq.heappop(self._heap)
            if self._at.get(thing) == when:
                del self._at[thing]
                found.append(thing)
        self.next = self._heap[0][0] if self._heap else NEVER
        return found
