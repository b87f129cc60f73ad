"""Who waits for a topic to change. Knows asyncio; nothing of what changes."""

from __future__ import annotations

import asyncio
from contextlib import suppress


class Waiting:
    def __init__(self) -> None:
        self._of_topic: dict[str, set[asyncio.Future[None]]] = {}
        self.stopping = False

    def __len__(self) -> int:
        return sum(map(len, self._of_topic.values()))

    async def until_changed(self, topic: str, seconds: float) -> None:
        """Until `changed` is called, or for so long; not at all when all is stopping."""
        if self.stopping:
            return
        future = asyncio.get_running_loop().create_future()
        self._of_topic.setdefault(topic, set()).add(future)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await future
        finally:
            self._forget(topic, future)

    def changed(self, topic: str) -> None:
        for future in self._of_topic.get(topic, ()):
            if not future.done():
                future.set_result(None)

    def stop(self) -> None:
        """Nobody waits any more."""
        self.stopping = True
        for topic in self._of_topic:
            self.changed(topic)

    def _forget(self, topic: str, future: asyncio.Future[None]) -> None:
        waiting = self._of_topic[topic]
        waiting.discard(future)
        if not waiting:
            del self._of_topic[topic]
