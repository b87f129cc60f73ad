"""Asks each nsqlookupd again and again, and tells whenever another set of nsqd comes of it. Knows asyncio.

One of Penstock's holds its answer back until there is another: a new nsqd is known at once. One of NSQ's answers at
once, and is asked each interval. All are asked, and their answers are joined.
"""

from __future__ import annotations

import asyncio
import logging
import random
from typing import TYPE_CHECKING, Final

from penstock.asking import ask
from penstock.client.lookup import WAIT, Found, Together, lookup_target, read_lookup, read_nodes
from penstock.errors import LookupFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from penstock.asking import Answer
    from penstock.client.address import Address

_log: Final = logging.getLogger("penstock.client")

_ACCEPT: Final = {"Accept": "application/vnd.nsq; version=1.0"}  # else one of long ago wraps its answer
_PATIENCE: Final = 5.0  # seconds for an answer
_JITTER: Final = 0.1  # of an interval: so that not all ask at once
_RETRY: Final = 0.2  # seconds to the next try at one that fails; twice as long each time, up to the interval
_AT_ONCE: Final = 0.05  # seconds between two answers that were waited for, at least


class Discovery:
    """Of nsqd that have a topic."""

    def __init__(
        self,
        lookupd: Iterable[Address],
        changed: Callable[[Collection[Address]], None],
        interval: float,
        topic: str = "",
    ) -> None:
        self._lookupd = tuple(lookupd)
        self._changed = changed
        self._interval = interval
        self._topic = topic
        self._together = Together()
        self._tasks: list[asyncio.Task[None]] = []
        self._pauses: dict[Address, asyncio.Event] = {}

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._follow(each)) for each in self._lookupd]

    def hurry(self) -> None:
        """Something changed, somebody noticed: do not wait for the next interval."""
        for event in self._pauses.values():
            event.set()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _follow(self, lookupd: Address) -> None:
        revision = ""
        failures = 0
        while True:
            pause = self._interval * random.uniform(1 - _JITTER, 1)
            try:
                found = await self._ask(lookupd, revision)
            except Exception as error:  # noqa: BLE001  whatever it is, it must not be the last try
                if not isinstance(error, LookupFailed):
                    _log.exception("nsqlookupd %s: what nobody foresaw", lookupd)
                failures += 1
                revision = ""
                pause = min(_RETRY * 2.0 ** min(failures, 20), pause)
                _log.warning("nsqlookupd %s: %s; again in %.1f s", lookupd, error, pause)
            else:
                failures = 0
                if self._together.told(lookupd, found.nodes):
                    self._changed(self._together.addresses)
                revision = found.revision
                if revision:
                    pause = _AT_ONCE
            await self._pause(lookupd, pause)

    async def _ask(self, lookupd: Address, revision: str) -> Found:
        patience = _PATIENCE + (WAIT if revision else 0)
        answer = await _get(lookupd, lookup_target(self._topic, revision), patience)
        said = answer.headers.get(b"x-penstock-revision", b"")
        return read_lookup(answer.status, answer.body, said, self._topic)

    async def _pause(self, lookupd: Address, seconds: float) -> None:
        self._pauses[lookupd] = event = asyncio.Event()
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            pass


class NodesDiscovery(Discovery):
    """Of all nsqd, and of the topics that they have."""

    async def _ask(self, lookupd: Address, revision: str) -> Found:
        answer = await _get(lookupd, "/nodes", _PATIENCE)
        return read_nodes(answer.status, answer.body)

    def having(self, topic: str) -> Collection[Address]:
        return self._together.having(topic)


async def _get(lookupd: Address, target: str, patience: float) -> Answer:
    """LookupFailed where no answer comes in time."""
    try:
        async with asyncio.timeout(patience):
            return await ask(lookupd.host, lookupd.port, target, headers=_ACCEPT)
    except OSError as error:
        raise LookupFailed(f"{lookupd}: {str(error) or type(error).__name__}") from error
