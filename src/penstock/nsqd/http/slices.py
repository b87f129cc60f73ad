"""A long answer that is made in short slices: the loop is let go of every few milliseconds. Knows text alone."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from penstock.nsqd.meters import Histogram

SLICE: Final = 3_000_000  # ns


class Slices:
    """What was written so far; whoever writes calls `pause` often. How long each slice took goes to `turns`."""

    __slots__ = ("_begun", "_blocks", "_parts", "_turns", "write")

    def __init__(self, turns: Histogram) -> None:
        self._turns = turns
        self._blocks: list[bytes] = []
        self._parts: list[str] = []
        self.write = self._parts.append
        self._begun = time.monotonic_ns()

    async def pause(self) -> None:
        """Where the slice was long enough, it is the others' turn."""
        if time.monotonic_ns() - self._begun > SLICE:
            self._pack()
            self._turns.add(time.monotonic_ns() - self._begun)
            await asyncio.sleep(0)
            self._begun = time.monotonic_ns()

    def whole(self) -> bytes:
        self._pack()
        return b"".join(self._blocks)

    def _pack(self) -> None:
        """Encoded as it comes, no slice has to do it for all."""
        self._blocks.append("".join(self._parts).encode("utf-8", "replace"))
        self._parts.clear()
