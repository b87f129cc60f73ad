"""A conversation with each nsqd that is wanted, begun again when it ends. Knows asyncio; not what is talked about."""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from penstock.errors import PenstockError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from penstock.client.address import Address

_log: Final = logging.getLogger("penstock.client")

_FIRST_PAUSE: Final = 0.05  # seconds; twice as long each time
_LONGEST_PAUSE: Final = 10.0
_LASTED: Final = 5.0  # a conversation of so long was a good one


class Keeper:
    def __init__(self, converse: Callable[[Address], Awaitable[None]]) -> None:
        """`converse` returns or raises when the conversation is over."""
        self._converse = converse
        self._wanted: frozenset[Address] = frozenset()
        self._tasks: dict[Address, asyncio.Task[None]] = {}
        self._pausing: dict[Address, asyncio.Event] = {}
        self._problems: dict[Address, str] = {}

    def want(self, addresses: Iterable[Address]) -> None:
        """These and no others; what goes on with others goes on, but is not begun again."""
        before, self._wanted = self._wanted, frozenset(addresses)
        for address in self._wanted:
            if address not in self._tasks:
                task = asyncio.get_running_loop().create_task(self._keep(address))
                self._tasks[address] = task
            elif address not in before:
                self.hurry(address)

    def hurry(self, address: Address) -> None:
        """It is there, somebody says: no pause is needed."""
        if address in self._pausing:
            self._pausing[address].set()

    @property
    def problems(self) -> str:
        """Why those that are wanted were not connected last."""
        return "; ".join(f"{address}: {why}" for address, why in self._problems.items() if address in self._wanted)

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep(self, address: Address) -> None:
        loop = asyncio.get_running_loop()
        failures = 0
        try:
            while address in self._wanted:
                began = loop.time()
                try:
                    await self._converse(address)
                    why = "the connection ended"
                except (OSError, PenstockError) as error:
                    why = str(error) or type(error).__name__
                except Exception as error:  # noqa: BLE001  whatever it is, it must not be the last try
                    why = f"{type(error).__name__}: {error}"
                    _log.exception("nsqd %s: what nobody foresaw", address)
                failures = 0 if loop.time() - began > _LASTED else failures + 1
                if address in self._wanted:
                    await self._pause(address, failures, why)
        finally:
            del self._tasks[address]

    async def _pause(self, address: Address, failures: int, why: str) -> None:
        seconds = min(_FIRST_PAUSE * 2.0 ** min(failures, 20), _LONGEST_PAUSE) * random.uniform(0.5, 1)
        _log.warning("nsqd %s: %s; again in %.1f s", address, why, seconds)
        self._problems[address] = why
        self._pausing[address] = event = asyncio.Event()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()
        del self._pausing[address]
