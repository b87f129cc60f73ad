"""A long answer that is made in short slices: the loop is let go of every few milliseconds. Knows text alone."""

from __future__ import annotations

import asyncio
import time
from typing import Final

SLICE: Final = 3_000_000  # ns


class Slices:
    """What was written so far; whoever writes calls `pause` often."""

    __slots__ = ("_blocks", "_parts", "_until", "write")

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._parts: list[str] = []
        self.write = self._parts.append
        self._until = time.monotonic_ns() + SLICE

    async def pause(self) -> None:
        """Where the slice was long enough, it is the others' turn."""
        if time.monotonic_ns() > self._until:
            self._pack()
            await asyncio.sleep(0)
            self._until = time.monotonic_ns() + SLICE

    def whole(self) -> bytes:
        self._pack()
        return b"".join(self._blocks)

    def _pack(self) -> None:
        """Encoded as it comes, no slice has to do it for all."""
        self._blocks.append("".join(self._parts).encode("utf-8", "replace"))
        self._parts.clear()
