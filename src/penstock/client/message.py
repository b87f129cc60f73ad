"""A message, as who consumes it sees it. What it is asked for, its subscription does."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from penstock.client.frames import Delivery
from penstock.client.given import as_seconds
from penstock.errors import AlreadyAnswered

if TYPE_CHECKING:
    from datetime import timedelta
    from types import TracebackType

_FIRST_DELAY: Final = 1.0  # seconds; twice as long at each attempt
_LONGEST_DELAY: Final = 900.0
_DOUBLINGS: Final = 10


class Message(Delivery):
    """Finish it or requeue it, once; or let `async with message:` do so.

    Nothing that is done with a message waits for an answer, as nsqd gives none: where the connection is gone, or the
    time that the message had, it comes again, to this consumer or to another.
    """

    __slots__ = ()

    async def finish(self) -> None:
        """It is done with, and does not come again."""
        if self.answered:
            raise AlreadyAnswered(f"message {self.id.decode()} was finished or requeued before")
        self.answered = True
        self.holder.finish(self)

    async def requeue(self, delay: float | timedelta | None = None, *, backoff: bool = True) -> None:
        """It shall come again after so many seconds, or longer at each attempt; and the consumer backs off, if it may.

        Say `backoff=False` where it is this message's fault and no other would fare better.
        """
        if self.answered:
            raise AlreadyAnswered(f"message {self.id.decode()} was finished or requeued before")
        seconds = self._delay() if delay is None else as_seconds(delay)
        self.answered = True
        self.holder.requeue(self, seconds, backoff)

    async def touch(self) -> None:
        """Its time begins anew. The consumer does so by itself, unless it was told not to."""
        if not self.answered:
            self.holder.touch(self, asyncio.get_running_loop().time())

    @property
    def held(self) -> bool:
        """Whether it is still this consumer's: neither answered, nor timed out, nor its connection gone."""
        return not self.answered and self.holder is not None and self.holder.holds(self)

    @property
    def published(self) -> datetime:
        """When it was published."""
        return datetime.fromtimestamp(self.timestamp / 1e9, UTC)

    @property
    def nsqd(self) -> str:
        """Where it came from: `host:port`."""
        return str(self.holder.address)

    def _delay(self) -> float:
        return min(_FIRST_DELAY * 2.0 ** min(self.attempts - 1, _DOUBLINGS), _LONGEST_DELAY)

    async def __aenter__(self) -> Message:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _where: TracebackType | None
    ) -> None:
        """Finished where all went well, requeued where not; at once and by nobody's fault where it was cancelled."""
        if self.answered:
            return
        if error is None:
            await self.finish()
        elif isinstance(error, Exception):
            await self.requeue()
        else:
            await self.requeue(0, backoff=False)

    def __repr__(self) -> str:
        body = self.body if len(self.body) <= 60 else self.body[:57] + b"..."
        return f"<Message {self.id.decode('latin-1')} attempt {self.attempts} {body!r}>"
