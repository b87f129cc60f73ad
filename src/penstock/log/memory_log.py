"""The log of an ephemeral topic: the same face as a topic's log, in memory, bounded; the oldest yield to the new."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from typing import TYPE_CHECKING

from penstock.errors import TooLarge
from penstock.log.chain import Hole
from penstock.log.segment import Block
from penstock.log.topic_log import BLOCK
from penstock.protocol.batch import HEADER, MAX_BATCH, RECORD, header, put_framed, put_records, seal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.log.birth import Birth


class MemoryLog:
    """At most about `limit` messages, whole batches of them; nothing outlives the process."""

    __slots__ = ("_blocks", "_open", "birth", "bytes", "dropped", "end", "last_time", "limit")

    def __init__(self, birth: Birth, limit: int) -> None:
        self.birth = birth
        self.limit = limit
        self.end = 0
        self.last_time = 0
        self.bytes = 0
        self.dropped = 0  # messages that yielded to newer ones
        self._blocks: deque[Block] = deque()
        self._open: list[tuple[bytes, int]] = []  # records of the batch being made, and their number

    @property
    def earliest(self) -> int:
        return self._blocks[0].first if self._blocks else self.end

    @property
    def committed(self) -> int:
        return self.end

    def append(self, bodies: Sequence[bytes], now: int, *, flags: int = 0, key: bytes = b"") -> int:
        """As a topic's log does; the oldest batches go where the bound is passed."""
        self.put(bodies, now)
        return self.write(now, flags=flags, key=key)

    def put(self, bodies: Sequence[bytes], now: int) -> None:
        payload = bytearray(_room(sum(map(len, bodies)) + RECORD * len(bodies)))
        put_records(payload, 0, bodies, now, self._next_id)
        self._open.append((bytes(payload), len(bodies)))

    def put_framed(self, data: bytes, start: int, stop: int, count: int, now: int) -> None:
        payload = bytearray(_room(stop - start + (RECORD - 4) * count))
        put_framed(payload, 0, data, start, count, now, self._next_id)
        self._open.append((bytes(payload), count))

    @property
    def _next_id(self) -> int:
        return self.birth.base + self.end + sum(count for _, count in self._open)

    def write(self, now: int, *, flags: int = 0, key: bytes = b"") -> int:
        first, count = self.end, sum(count for _, count in self._open)
        if not count:
            return first
        self.last_time = max(now, self.last_time)
        batch = bytearray(HEADER) + key + b"".join(payload for payload, _ in self._open)
        self._open.clear()
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
        """The batch that holds `offset`, or the first one kept."""
        if offset >= self.end:
            return None
        number = bisect_right(self._blocks, offset, key=lambda block: block.first) - 1
        return self._blocks[max(0, number)]

    def at_time(self, time: int) -> int:
        for block in self._blocks:
            if header(block.data).appended >= time:
                return block.first
        return self.end

    def holes(self, first: int, end: int) -> list[Hole]:
        return []

    def delete_below(self, offset: int) -> None:
        """Batches that lie wholly below `offset` go."""
        while self._blocks and self._blocks[0].next <= offset:
            self._drop()


def _room(size: int) -> int:
    if size > MAX_BATCH - HEADER:
        raise TooLarge(f"{size} bytes are more than one batch can hold")
    return size
