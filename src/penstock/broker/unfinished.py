# cython: annotation_typing=False
"""A channel's unfinished messages: in flight, ready again, or waiting for a delay. A message is in one place only.

    take ------> in flight --finish--> gone
      ^             |  |
      |   requeue,  |  '--requeue with a delay--> delayed
      |    expire,  |                                |
      |    leave    v                                | due
      '---------- ready <----------------------------'

Knows offsets and times (monotonic ns); no bodies, no consumers but their numbers, no clock. `slots.py` holds the
messages; here are the queues that say which is next. They are lazy: what has left a state by another way is passed
over when its turn comes, by asking its slot.
"""

from __future__ import annotations

import heapq
from array import array
from collections import Counter
from typing import Final

from penstock.broker.deadlines import NEVER, Deadlines
from penstock.broker.slots import DELAYED, IN_FLIGHT, READY, Slots

GRAIN: Final = 8 * 10**6  # ns: delays end together in steps of this, never early
_CHUNK: Final = 4096
_NONE: Final = array("Q")
_NO_SLOTS: Final = Slots()  # of every channel that has handed out nothing yet: slots take 4 KB


class Unfinished:
    """What of a channel was handed out and is not finished."""

    __slots__ = ("_buckets", "_deadlines", "_delays", "_odd", "_ready", "_ready_at", "delayed", "slots")

    def __init__(self) -> None:
        self.slots = _NO_SLOTS
        self.delayed = 0
        self._ready: list[array[int]] = []  # offsets in the order in which they became ready
        self._ready_at = 0  # how many of the first array are taken
        self._deadlines: dict[int, Deadlines] = {}  # by message timeout
        self._odd: list[
            tuple[int, int, int]
        ] = []  # (until, offset, holder) in no such order: touched up to the maximum
        self._delays: dict[int, array[int]] = {}  # end of a delay, in grains -> offsets
        self._buckets: list[int] = []  # the same ends, a heap

    def __len__(self) -> int:
        return len(self.slots)

    @property
    def in_flight(self) -> int:
        return self.slots.in_flight

    @property
    def ready(self) -> int:
        return len(self.slots) - self.slots.in_flight - self.delayed

    # --- handing out

    def take(self, first: int, count: int, holder: int, now: int, timeout: int) -> None:
        """Messages that were never handed out go to a holder, for so long."""
        if self.slots is _NO_SLOTS:
            self.slots = Slots()
        self.slots.take(first, count, holder, now, now + timeout)
        self._of(timeout).push(now + timeout, first, count, holder)

    def next_ready(self, limit: int) -> array[int]:
        """The next ready messages, at most so many; they stay where they are until `take_again`."""
        while self._ready and self._ready_at >= len(self._ready[0]):
            self._ready.pop(0)
            self._ready_at = 0
        return self._ready[0][self._ready_at : self._ready_at + limit] if self._ready else _NONE

    def take_again(self, offsets: array[int], holder: int, now: int, timeout: int) -> array[int]:
        """The first of the ready messages, which are these, go to a holder; how often each was tried, 0: not ready."""
        self._ready_at += len(offsets)
        tried = self.slots.take_again(offsets, holder, now, now + timeout)
        self._of(timeout).push_these(now + timeout, offsets, holder)
        return tried

    def _of(self, timeout: int) -> Deadlines:
        queue = self._deadlines.get(timeout)
        if queue is None:
            queue = self._deadlines[timeout] = Deadlines(self.slots)
        return queue

    # --- coming back

    def finish(self, ids: array[int], start: int, stop: int, base: int, holder: int) -> list[int] | None:
        """The messages of `ids[start:stop]` are done; the places of those that the holder does not have."""
        return self.slots.finish(ids, start, stop, base, holder)

    def requeue(self, offset: int, holder: int, now: int, delay: int) -> bool:
        """A holder gives a message back, to be ready after the delay. False where it does not have it."""
        if delay <= 0:
            if done := self.slots.requeue(offset, holder, READY, 0):
                self._push(array("Q", (offset,)))
            return done
        end = -(-(now + delay) // GRAIN)
        if done := self.slots.requeue(offset, holder, DELAYED, end * GRAIN):
            self._delay(offset, end)
        return done

    def _delay(self, offset: int, end: int) -> None:
        offsets = self._delays.get(end)
        if offsets is None:
            offsets = self._delays[end] = array("Q")
            heapq.heappush(self._buckets, end)
        offsets.append(offset)
        self.delayed += 1

    def touch(self, offset: int, holder: int, now: int, timeout: int, most: int) -> bool:
        """A holder gets its time anew, but no more than `most` in all. False where it does not have the message."""
        until = self.slots.touch(offset, holder, now + timeout, most)
        if until < 0:
            return False
        if until == now + timeout:
            self._of(timeout).push(until, offset, 1, holder)
        else:
            heapq.heappush(self._odd, (until, offset, holder))
        return True

    def take_back(self, first: int, count: int, holder: int) -> None:
        """These never left the process: ready at once, and this attempt was none."""
        self._push(self.slots.take_back(first, count, holder))

    def _push(self, offsets: array[int]) -> None:
        last = self._ready[-1] if self._ready else None
        if last is not None and len(last) < _CHUNK:
            last.extend(offsets)
        elif offsets:
            self._ready.append(offsets)

    # --- time

    def expire(self, now: int) -> Counter[int]:
        """In flight -> ready for all whose time ran out; how many of each holder."""
        expired: Counter[int] = Counter()
        for queue in self._deadlines.values():
            for woken in queue.expire(now, expired):
                self._push(woken)
        while self._odd and self._odd[0][0] <= now:
            until, offset, holder = heapq.heappop(self._odd)
            if woken := self.slots.wake(offset, 1, IN_FLIGHT, until):
                self._push(woken)
                expired[holder] += 1
        return expired

    def end_delays(self, now: int) -> int:
        """Delayed -> ready for all whose delay is over; how many."""
        ended = 0
        while self._buckets and self._buckets[0] * GRAIN <= now:
            end = heapq.heappop(self._buckets)
            woken = self.slots.wake_these(self._delays.pop(end), DELAYED, end * GRAIN)
            self._push(woken)
            ended += len(woken)
        self.delayed -= ended
        return ended

    def next_time(self) -> int | None:
        """When `expire` or `end_delays` has something to do."""
        while self._odd and self.slots.gone(self._odd[0][1], 1, IN_FLIGHT, self._odd[0][0]):
            heapq.heappop(self._odd)
        times = [self._buckets[0] * GRAIN] if self._buckets else []
        times += [self._odd[0][0]] if self._odd else []
        for timeout, queue in list(self._deadlines.items()):
            if (until := queue.next_time()) < NEVER:
                times.append(until)
            else:
                del self._deadlines[timeout]
        return min(times, default=None)

    # --- all of it

    def clear(self) -> None:
        """Everything is forgotten: what comes back of it later is not in flight."""
        self.slots.clear()
        self.delayed = 0
        self._ready.clear()
        self._ready_at = 0
        self._deadlines.clear()
        self._odd.clear()
        self._delays.clear()
        self._buckets.clear()

    def put(self, offset: int, attempts: int, ready_at: int | None) -> None:
        """As it was before a restart: ready, or delayed."""
        if self.slots is _NO_SLOTS:
            self.slots = Slots()
        if ready_at is None:
            self.slots.put(offset, READY, attempts, 0)
            self._push(array("Q", (offset,)))
        else:
            end = -(-ready_at // GRAIN)
            self.slots.put(offset, DELAYED, attempts, end * GRAIN)
            self._delay(offset, end)
