"""Consumes a channel over asyncio. Messages, RDY and back-off stand in `intake`; here are sockets, timers and users.

async for message in consumer        one by one, as the user asks for them
await consumer.run(handler)          the same, with as many handlers at once as are asked for
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
from collections import deque
from typing import TYPE_CHECKING, Final

from penstock.client.address import addresses
from penstock.client.backoff import Backoff
from penstock.client.connection import Manner, connect
from penstock.client.discovery import Discovery
from penstock.client.frames import ERROR, Frames
from penstock.client.given import topic_name
from penstock.client.handshake import Wishes
from penstock.client.intake import Intake, Stats
from penstock.client.keeper import Keeper
from penstock.client.message import Message
from penstock.client.subscription import Subscription
from penstock.client.turn import Turn
from penstock.errors import BadChannel, Closed
from penstock.protocol.names import is_valid

if TYPE_CHECKING:
    import ssl as tls
    from collections.abc import Awaitable, Callable, Iterable
    from types import TracebackType

    from penstock.client.address import Address
    from penstock.client.connection import Connection
    from penstock.client.handshake import Compression

_log: Final = logging.getLogger("penstock.client")
_FAILED: Final = (b"E_FIN_FAILED", b"E_REQ_FAILED", b"E_TOUCH_FAILED")  # of one message; the connection goes on


class _Line:
    """One nsqd's connection, as its user."""

    def __init__(self, consumer: Consumer, subscription: Subscription) -> None:
        self._consumer = consumer
        self._subscription = subscription

    def received(self, frames: Frames, now: float) -> None:
        if frames.messages:
            messages, frames.messages = frames.messages, []
            self._consumer._received(self._subscription, messages, now)
        if frames.answers:
            answers, frames.answers = frames.answers, []
            for kind, data in answers:
                if kind == ERROR:
                    self._consumer._refused(self._subscription, data)

    def lost(self, _error: Exception | None) -> None:
        self._consumer._lost(self._subscription)


class Consumer:
    """Takes a channel's messages from an nsqd, from several, or from all that nsqlookupd names.

        async with Consumer("events", "archive", nsqd="127.0.0.1:4150") as consumer:
            async for message in consumer:
                ...
                await message.finish()

    Connections come and go as nsqd do. Leaving the context gives back what was not answered.
    """

    def __init__(
        self,
        topic: str,
        channel: str,
        *,
        nsqd: str | Iterable[str] | None = None,
        lookupd: str | Iterable[str] | None = None,
        max_in_flight: int = 100,
        max_attempts: int | None = None,
        on_give_up: Callable[[Message], Awaitable[None] | None] | None = None,
        backoff: float = 120.0,
        touch: bool = True,
        msg_timeout: float | None = None,
        stop_timeout: float = 30.0,
        poll_interval: float = 15.0,
        sample_rate: int = 0,
        ssl: tls.SSLContext | None = None,
        compression: Compression | None = None,
        secret: str | bytes | None = None,
        client_id: str | None = None,
    ) -> None:
        """At most `max_in_flight` messages are here and unanswered. They are touched in time, unless `touch` is false.

        A message that came more than `max_attempts` times is given to `on_give_up` instead, and finished. Requeued
        messages make the consumer back off, for `backoff` seconds at the longest; 0 for never. `stop_timeout` is how
        long handlers may go on when the consumer is stopped. nsqlookupd that cannot tell of news are asked each
        `poll_interval`. Times are in seconds.
        """
        self.topic, self.channel = topic_name(topic), channel
        if not is_valid(channel):
            raise BadChannel(f"{channel!r} is no name that a channel may have")
        self._addresses = addresses(nsqd, 4150)
        self._lookupd = addresses(lookupd, 4161)
        if bool(self._addresses) == bool(self._lookupd):
            raise ValueError("a consumer needs either nsqd or lookupd")
        wishes = Wishes(
            msg_timeout=msg_timeout,
            sample_rate=sample_rate,
            tls=ssl is not None,
            compression=compression,
            secret=secret.encode() if isinstance(secret, str) else secret,
            client_id=client_id,
        )
        self._manner = Manner(wishes=wishes, ssl=ssl)
        self._max_attempts = max_attempts or math.inf
        self._on_give_up = on_give_up
        self._touch = touch
        self._stop_timeout = stop_timeout
        self._poll_interval = poll_interval
        self._intake = Intake(max_in_flight, Backoff(longest=backoff))
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = math.inf
        self._workers: set[asyncio.Task[None]] = set()
        self._patience: asyncio.TimerHandle | None = None
        self._keeper: Keeper | None = None
        self._discovery: Discovery | None = None
        self._opened = self._closed = False

    # --- open, stop and close

    async def __aenter__(self) -> Consumer:
        await self.open()
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _where: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Begin to connect."""
        if self._opened:
            raise Closed("a consumer is opened once")
        self._opened = True
        self._loop = asyncio.get_running_loop()
        self._turn = Turn(self._loop, self._end_turn)
        self._keeper = Keeper(self._converse)
        if self._lookupd:
            self._discovery = Discovery(self._lookupd, self._want, self._poll_interval, self.topic)
            self._discovery.start()
        else:
            self._want(self._addresses)

    def stop(self) -> None:
        """No new messages: iterating ends, and handlers that have begun go on. May be called from a signal handler."""
        if self._opened and not self._intake.stopping:
            self._intake.stop()
            self._set_timer()
            self._want(())
            self._wake_all()
            self._patience = self._loop.call_later(self._stop_timeout, self._lose_patience)

    def _lose_patience(self) -> None:
        if self._workers:
            _log.warning("%d handlers did not end in %g s: cancelled", len(self._workers), self._stop_timeout)
        for worker in self._workers:
            worker.cancel()

    async def close(self) -> None:
        """Stop, give back what was not answered, and disconnect."""
        if not self._opened or self._closed:
            return
        self.stop()
        try:
            if self._workers:
                await asyncio.wait(self._workers)
        finally:
            await self._disconnect()

    async def _disconnect(self) -> None:
        self._closed = True
        self._intake.give_back()
        for timer in (self._patience, self._timer):
            if timer is not None:
                timer.cancel()
        if self._discovery is not None:
            await self._discovery.close()
        if self._keeper is not None:
            await self._keeper.close()
        self._wake_all()

    # --- consuming

    def __aiter__(self) -> Consumer:
        return self

    async def __anext__(self) -> Message:
        """The next message; the iteration ends when the consumer was stopped."""
        while True:
            message = self._intake.next()
            if message is None:
                if not self._opened:
                    raise Closed("this consumer is not open: use `async with`")
                if self._intake.stopping:
                    raise StopAsyncIteration
                waiter = self._loop.create_future()
                self._waiting.append(waiter)
                try:
                    await waiter
                except asyncio.CancelledError:
                    if waiter in self._waiting:
                        self._waiting.remove(waiter)
                    else:
                        self._wake(1)  # what woke it is for somebody else
                    raise
            elif message.attempts > self._max_attempts:
                await self._give_up(message)
            else:
                return message

    async def run(self, handler: Callable[[Message], Awaitable[object]], *, concurrency: int = 1) -> None:
        """Give each message to the handler, so many at once, until the consumer is stopped.

        A message is finished when its handler returns, and requeued when it raises, unless it answered the message.
        """
        workers = [asyncio.create_task(self._work(handler)) for _ in range(concurrency)]
        self._workers.update(workers)
        try:
            await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            await self._end(workers)
        for worker in workers:
            if not worker.cancelled():
                worker.result()

    async def _end(self, workers: Iterable[asyncio.Task[None]]) -> None:
        workers = list(workers)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        self._workers.difference_update(workers)

    async def _work(self, handler: Callable[[Message], Awaitable[object]]) -> None:
        async for message in self:
            try:
                async with message:
                    await handler(message)
            except Exception:  # noqa: BLE001  whatever it is, the next message comes
                _log.exception("a handler failed, its message is requeued: %r", message)

    async def _give_up(self, message: Message) -> None:
        try:
            if self._on_give_up is not None:
                done = self._on_give_up(message)
                if inspect.isawaitable(done):
                    await done
        except Exception:  # noqa: BLE001  whatever it is, the next message comes
            _log.exception("giving up a message failed, it is requeued: %r", message)
            if not message.answered:
                await message.requeue()
            return
        _log.warning("a message is given up after %d attempts: %r", message.attempts - 1, message)
        self._intake.stats.given_up += 1
        if not message.answered:
            await message.finish()

    # --- how it goes

    @property
    def stats(self) -> Stats:
        return self._intake.stats

    @property
    def connections(self) -> list[str]:
        """The nsqd that it is connected to."""
        return [str(each.address) for each in self._intake.connections]

    @property
    def max_in_flight(self) -> int:
        return self._intake.max_in_flight

    @max_in_flight.setter
    def max_in_flight(self, count: int) -> None:
        """0 pauses it."""
        self._intake.allow(count, self._loop.time() if self._opened else 0.0)
        self._set_timer()

    # --- connections, and what comes

    def _want(self, nsqds: Iterable[Address]) -> None:
        if self._keeper is not None:
            self._keeper.want(() if self._intake.stopping else nsqds)

    async def _converse(self, address: Address) -> None:
        connection: Connection = await connect(address, self._turn, self._manner, (self.topic, self.channel))
        agreement = connection.agreement
        subscription = Subscription(address, agreement, connection.send, self._intake.outcome, touches=self._touch)
        if self._intake.stopping:
            connection.close()
            return
        self._intake.connected(subscription, agreement.max_rdy_count, connection.round_trip, self._loop.time())
        self._set_timer()
        connection.begin(Frames(Message, subscription), _Line(self, subscription))
        try:
            await connection.closed
        finally:
            connection.close()
            if self._discovery is not None:
                self._discovery.hurry()

    def _received(self, subscription: Subscription, messages: list[Message], now: float) -> None:
        intake = self._intake
        intake.received(subscription, messages, now)
        self._wake(len(messages))
        if intake.due < self._timer_due:
            self._set_timer()

    def _refused(self, subscription: Subscription, data: bytes) -> None:
        if data.startswith(_FAILED):
            self.stats.failed += 1
            _log.info("nsqd %s: %s", subscription.address, data.decode("utf-8", "replace"))
        else:
            _log.error("nsqd %s: %s", subscription.address, data.decode("utf-8", "replace"))

    def _lost(self, subscription: Subscription) -> None:
        self._intake.disconnected(subscription, self._loop.time())
        self._set_timer()

    def _wake(self, count: int) -> None:
        waiting = self._waiting
        while waiting and count:
            waiter = waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                count -= 1

    def _wake_all(self) -> None:
        self._wake(len(self._waiting))

    # --- time

    def _end_turn(self) -> None:
        if self._intake.restless:
            self._tick()

    def _tick(self) -> None:
        self._intake.tick(self._loop.time())
        self._set_timer()

    def _set_timer(self) -> None:
        """One timer, for what is due next."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_due = self._intake.due
        if self._timer_due < math.inf and not self._closed:
            self._timer = self._loop.call_at(self._timer_due, self._tick)
