"""The log of an ephemeral topic: the same face as a topic's log, in memory, bounded; the oldest yield to the new."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import deque
from typing import TYPE_CHECKING

from penstock.errors import Refused, TooLarge
from penstock.log.chain import Hole
from penstock.log.segment import Block
from penstock.log.tail import PAYLOAD
from penstock.log.timetable.run import Entry
from penstock.log.topic_log import BLOCK
from penstock.protocol.batch import HEADER, MOVED, RECORD, header, put_framed, put_records, seal, size_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Buffer

    from penstock.log.birth import Birth


class MemoryLog:
    """At most about `limit` messages, whole batches of them; nothing outlives the process."""

    __slots__ = (
        "_blocks", "_count", "_deferrals", "_deferred", "_payload", "_size", "birth", "bytes", "dropped", "end",
        "last_time", "limit",
    )  # fmt: skip

    def __init__(self, birth: Birth, limit: int) -> None:
        self.birth = birth
        self.limit = limit
        self.end = 0
        self.last_time = 0
        self.bytes = 0
        self.dropped = 0  # messages that yielded to newer ones
        self._blocks: deque[Block] = deque()
        self._deferred: list[tuple[int, int, int, bytes]] = []  # (due, number, timestamp, body), a heap
        self._deferrals = 0
        self._payload: list[bytes] = []  # of the batch being made: its records,
        self._count = 0  # their number
        self._size = 0  # and bytes

    @property
    def earliest(self) -> int:
        return self._blocks[0].first if self._blocks else self.end

    @property
    def kept_from(self) -> int:
        return self.earliest

    @property
    def first_time(self) -> int:
        return header(self._blocks[0].data).appended if self._blocks else 0

    @property
    def committed(self) -> int:
        return self.end

    def append(self, bodies: Sequence[bytes], now: int, *, flags: int = 0, key: bytes = b"") -> int:
        """As a topic's log does; the oldest batches go where the bound is passed."""
        self.put(bodies, now)
        return self.write(now, flags=flags, key=key)

    def put(self, bodies: Sequence[bytes], now: int) -> None:
        """As a topic's log does."""
        payload = self._room(size_of(bodies))
        put_records(payload, 0, bodies, now, self.birth.base + self.end + self._count)
        self._add(payload, len(bodies))

    def put_framed(self, data: Buffer, start: int, stop: int, count: int, now: int, *, skip: int = 0) -> None:
        """As a topic's log does."""
        payload = self._room(stop - start + (RECORD - 4 - skip) * count)
        end = put_framed(payload, 0, data, start, count, now, self.birth.base + self.end + self._count, skip)
        self._add(payload[:end], count)

    def _room(self, size: int) -> bytearray:
        if self._size + size > PAYLOAD:
            raise TooLarge(f"{self.birth.name}: {self._size + size} bytes are more than one batch can hold")
        return bytearray(size)

    def _add(self, payload: bytearray, count: int) -> None:
        self._payload.append(bytes(payload))
        self._count += count
        self._size += len(payload)

    def relax(self) -> None:
        """There is nothing else that could hold it."""

    @property
    def flush_due(self) -> bool:
        return False

    def write(self, now: int, *, flags: int = 0, key: bytes = b"") -> int:
        """As a topic's log does."""
        first, count = self.end, self._count
        if not count:
            return first
        self.last_time = max(now, self.last_time)
        batch = bytearray(HEADER) + key + b"".join(self._payload)
        self._payload.clear()
        self._count = self._size = 0
        seal(batch, 0, len(batch), first, count, self.last_time, flags, len(key), self.birth.seed)
        self.end += count
        self.bytes += len(batch)
        self._blocks.append(Block(first, self.end, batch))
        while self.end - self.earliest > self.limit and len(self._blocks) > 1:
            self.dropped += self._blocks[0].next - self._blocks[0].first
            self._drop()
        return first

    def _drop(self) -> None:
        block = self._blocks.popleft()
        self.bytes -= len(block.data)

    def read(self, offset: int, size: int = BLOCK, *, now: bool = False) -> Block | None:
        """The batch that holds `offset`, or the first one kept; None where nothing is kept behind it."""
        if offset >= self.end or not self._blocks:
            return None
        number = max(0, bisect_right(self._blocks, offset, key=lambda block: block.first) - 1)
        if self._blocks[number].next <= offset:  # it lies in a hole
            number += 1
        return self._blocks[number] if number < len(self._blocks) else None

    def reach(self, offset: int, size: int) -> int:
        """As a topic's log says."""
        for block in self._blocks:
            if block.next > offset:
                if size < len(block.data):
                    return max(offset, block.first)
                size -= len(block.data)
        return self.end

    def at_time(self, time: int) -> int:
        for block in self._blocks:
            if header(block.data).appended >= time:
                return block.first
        return self.end

    # --- what waits for its time

    def defer(self, bodies: Sequence[bytes], due: int, now: int, *, key: bytes = b"") -> None:
        """Keep the bodies until `due`; as many as the log itself may hold."""
        if len(self._deferred) + len(bodies) > max(self.limit, 1):
            raise Refused(f"{self.birth.name}: too many messages are deferred")
        for body in bodies:
            self._deferrals += 1
            heapq.heappush(self._deferred, (due, self._deferrals, now, body))

    def move_due(self, now: int) -> int:
        """Append what is due, with the time of its publish; how many that were."""
        moved = 0
        while self._deferred and self._deferred[0][0] <= now:
            _, _, timestamp, body = heapq.heappop(self._deferred)
            self.put([body], timestamp)
            moved += 1
        self.write(now, flags=MOVED)
        return moved

    @property
    def deferred_count(self) -> int:
        return len(self._deferred)

    def deferred(self, limit: int) -> list[Entry]:
        """As a topic's log says."""
        return [Entry(due, timestamp, body) for due, _, timestamp, body in heapq.nsmallest(limit, self._deferred)]

    @property
    def next_due(self) -> int | None:
        return self._deferred[0][0] if self._deferred else None

    def add_hole(self, hole: Hole) -> None:
        """The batches that lie in it go; the topic counts it."""
        kept = [block for block in self._blocks if block.first < hole.first or block.next > hole.next]
        self._blocks = deque(kept)
        self.bytes = sum(len(block.data) for block in kept)

    def holes(self, first: int, end: int) -> list[Hole]:
        """What `[first, end)` lacks because it was emptied, in order."""
        ends = [self.earliest, *(block.next for block in self._blocks)]
        begins = [*(block.first for block in self._blocks), self.end]
        found = (Hole(max(low, first), min(high, end), "emptied") for low, high in zip(ends, begins, strict=True))
        return [hole for hole in found if hole.first < hole.next]

    def delete_below(self, offset: int) -> None:
        """Batches that lie wholly below `offset` go."""
        while self._blocks and self._blocks[0].next <= offset:
            self._drop()
