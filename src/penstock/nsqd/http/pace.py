"""Long answers in short slices: the loop is let go of every few milliseconds. Knows nothing else."""

from __future__ import annotations

import asyncio
import time
from typing import Final

SLICE: Final = 3_000_000  # ns


class Pace:
    """Of one answer that is being made."""

    __slots__ = ("_until",)

    def __init__(self) -> None:
        self._until = time.monotonic_ns() + SLICE

    @property
    def tired(self) -> bool:
        """It is the others' turn: `rest`."""
        return time.monotonic_ns() > self._until

    async def rest(self) -> None:
        await asyncio.sleep(0)
        self._until = time.monotonic_ns() + SLICE
