"""Blocks of a topic's log for HTTP, which waits for the device where the loop does not. Knows no request."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from penstock.errors import HttpError, NotRetained
from penstock.log.memory_log import MemoryLog

if TYPE_CHECKING:
    from penstock.log.segment import Block
    from penstock.log.topic_log import TopicLog
    from penstock.nsqd.home import Home
    from penstock.nsqd.service import Service

BLOCK: Final = 256 << 10  # about how much of an answer is in memory
AHEAD: Final = 1 << 20  # bytes that a thread reads at a time


class Blocks:
    """Reads; between two of them anything may have happened."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._node = service.node

    async def read(self, home: Home, offset: int, size: int = BLOCK, *, held: bool = False) -> Block | None:
        """As the log's `read`, of what is retained, or with `held` also of what is kept for its stragglers alone."""
        log = home.log
        self._must_have(home, offset, held)
        if isinstance(log, MemoryLog):
            return log.read(offset)
        try:
            return log.read(offset, size, now=True)
        except BlockingIOError:
            await self._warm(log, offset)
        self._must_have(home, offset, held)
        return log.read(offset, size)

    async def at_time(self, home: Home, time: int) -> int:
        """The first offset of the first batch that was appended then or later; the committed end, or `kept_from`."""
        log = home.log
        if not isinstance(log, MemoryLog):
            await self.read(home, max(log.earliest, log.near(time)))  # so that it is in memory
        return max(log.kept_from, log.at_time(time))

    def _must_have(self, home: Home, offset: int, held: bool) -> None:
        if self._node.homes.get(home.topic.name) is not home:
            raise HttpError(404, "TOPIC_NOT_FOUND")
        if offset < home.log.earliest and not held:
            raise NotRetained(f"{home.topic.name}: {offset} is not kept any more", home.log.earliest)

    async def _warm(self, log: TopicLog, offset: int) -> None:
        """A thread has the device's bytes put into memory."""
        there = asyncio.Event()
        self._service.run(log.warm(offset, AHEAD), there.set)
        await there.wait()
