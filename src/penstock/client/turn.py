"""What is done once at the end of a turn of the loop, whatever the turn brought. Knows asyncio, and no NSQ."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


class Turn:
    """`end` is called once, behind all that runs in a turn in which somebody said `wake`; then what was sent goes."""

    def __init__(self, loop: asyncio.AbstractEventLoop, end: Callable[[], None]) -> None:
        self.loop = loop
        self._end = end
        self._writers: list[Callable[[], None]] = []
        self._awake = False

    def wake(self) -> None:
        if not self._awake:
            self._awake = True
            self.loop.call_soon(self._run)

    def now(self) -> None:
        """Do not wait for the end, unless somebody else waits for it."""
        if not self._awake:
            self._awake = True
            self._run()

    def write(self, flush: Callable[[], None]) -> None:
        """Call this at the end."""
        self._writers.append(flush)
        self.wake()

    def _run(self) -> None:
        try:
            self._end()
        finally:
            self._awake = False
            writers, self._writers = self._writers, []
            for flush in writers:
                flush()
