"""Publishes over asyncio, to one nsqd or to several. What waits and what is owed stands in `outbox`.

publish --> outbox --the turn's end--> a lane, in turn --OK--> publish returns
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

from penstock.client.address import addresses
from penstock.client.connection import Connection, Manner, connect
from penstock.client.discovery import NodesDiscovery
from penstock.client.frames import ERROR, Frames
from penstock.client.given import as_bodies, as_body, as_ms, topic_name
from penstock.client.handshake import Wishes
from penstock.client.keeper import Keeper
from penstock.client.outbox import Lane, Outbox
from penstock.client.turn import Turn
from penstock.errors import Closed

if TYPE_CHECKING:
    import ssl as tls
    from collections.abc import Iterable
    from datetime import timedelta
    from types import TracebackType

    from typing_extensions import Buffer

    from penstock.client.address import Address
    from penstock.client.handshake import Compression
    from penstock.client.outbox import Batch

_LOOKS: Final = 10  # within a timeout, for what waits too long


class _Lane(Lane):
    """One nsqd that publishes go to."""

    def __init__(self, producer: Producer, address: Address, connection: Connection) -> None:
        super().__init__(producer._outbox)
        self.address = address
        self._producer = producer
        self._connection = connection

    def send(self, batch: Batch, now: float) -> None:
        self.sent(batch, now)
        self._connection.send(batch.command())

    def received(self, frames: Frames, _now: float) -> None:
        answers, frames.answers = frames.answers, []
        for kind, data in answers:
            self.answer(kind, data)
            if kind == ERROR:  # nsqd does nothing more for this connection
                self._producer._left(self)
                self._connection.close()
                break
        self._producer._answered()

    def lost(self, error: Exception | str | None) -> None:
        self._producer._left(self)
        super().lost(f"{self.address}: {error or 'the connection ended'}")
        self._producer._answered()

    def end(self) -> None:
        self._connection.close()

    def look(self, before: float) -> None:
        if self.owed and self.owed[0].since <= before:
            self._connection.abort(TimeoutError("no answer came in time"))


class Producer:
    """Publishes to an nsqd, to several in turn, or to those that nsqlookupd names.

        async with Producer("127.0.0.1:4150") as producer:
            await producer.publish("events", b"hello")

    A publish returns when an nsqd has answered OK. It raises NotSent when none could be reached in time, AnswerLost
    when nobody knows, and what nsqd says where it refuses. What many tasks publish at the same time goes out together.
    """

    def __init__(
        self,
        nsqd: str | Iterable[str] | None = None,
        *,
        lookupd: str | Iterable[str] | None = None,
        timeout: float = 30.0,
        max_pending: int = 10_000,
        max_pending_bytes: int = 64 << 20,
        poll_interval: float = 10.0,
        ssl: tls.SSLContext | None = None,
        compression: Compression | None = None,
        secret: str | bytes | None = None,
        client_id: str | None = None,
    ) -> None:
        """`timeout` is how long a message may wait for a connection, and then for its answer, in seconds.

        With `max_pending` messages unanswered, or so many bytes of them, `publish` waits before it takes more.
        nsqlookupd is asked each `poll_interval`. `secret` is for nsqd that ask for one (AUTH).
        """
        self._addresses = addresses(nsqd, 4150)
        self._lookupd = addresses(lookupd, 4161)
        if bool(self._addresses) == bool(self._lookupd):
            raise ValueError("a producer needs either nsqd or lookupd")
        wishes = Wishes(
            tls=ssl is not None,
            compression=compression,
            secret=secret.encode() if isinstance(secret, str) else secret,
            client_id=client_id,
        )
        self._manner = Manner(wishes=wishes, ssl=ssl, timeout=min(timeout, 5.0))
        self._timeout = timeout
        self._poll_interval = poll_interval
        self._max_pending = max_pending
        self._max_pending_bytes = max_pending_bytes
        self._outbox = Outbox()
        self._lanes: list[_Lane] = []
        self._next_lane = 0
        self._for_room: deque[asyncio.Future[None]] = deque()
        self._drained: asyncio.Future[None] | None = None
        self._open = False
        self._keeper: Keeper | None = None
        self._discovery: NodesDiscovery | None = None
        self._timer: asyncio.TimerHandle | None = None

    # --- open and close

    async def __aenter__(self) -> Producer:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _where: TracebackType | None
    ) -> None:
        await self.close(drain=kind is None)

    async def open(self) -> None:
        """Begin to connect; messages may be published at once."""
        if self._open:
            raise Closed("this producer is open already")
        self._loop = asyncio.get_running_loop()
        self._turn = Turn(self._loop, self._dispatch)
        self._keeper = Keeper(self._converse)
        self._open = True
        if self._lookupd:
            self._discovery = NodesDiscovery(self._lookupd, self._keeper.want, self._poll_interval)
            self._discovery.start()
        else:
            self._keeper.want(self._addresses)

    async def close(self, *, drain: bool = True) -> None:
        """Wait until all is answered that other tasks publish, unless it is not to be drained; then end it."""
        if not self._open:
            return
        self._open = False
        self._let_in(len(self._for_room))
        if drain and self._outbox.count:
            self._drained = self._loop.create_future()
            await self._drained
        if self._timer is not None:
            self._timer.cancel()
        for lane in list(self._lanes):
            lane.end()
        if self._discovery is not None:
            await self._discovery.close()
        if self._keeper is not None:
            await self._keeper.close()
        self._outbox.expire(float("inf"), "the producer was closed")

    # --- publishing

    async def publish(self, topic: str, body: Buffer) -> None:
        """One message; it returns when an nsqd has it."""
        topic_name(topic)
        body = as_body(body)
        if not self._has_room:
            await self._wait_for_room()
        receipt = self._loop.create_future()
        self._outbox.put(topic, body, receipt, self._loop.time())
        self._turn.wake()
        await receipt

    async def publish_many(self, topic: str, bodies: Iterable[Buffer]) -> None:
        """All of them in one MPUB, to one nsqd: all or nothing."""
        await self._put_together(topic, as_bodies(bodies))

    async def defer(self, topic: str, body: Buffer, delay: float | timedelta) -> None:
        """One message, for consumers to be given after so many seconds."""
        await self._put_together(topic, [as_body(body)], as_ms(delay))

    async def _put_together(self, topic: str, bodies: list[bytes], delay: int | None = None) -> None:
        topic_name(topic)
        if not bodies:
            return
        if not self._has_room:
            await self._wait_for_room()
        receipt = self._loop.create_future()
        self._outbox.put_together(topic, bodies, receipt, self._loop.time(), delay)
        self._turn.now()  # it is joined with nothing, so that it waits for nothing
        await receipt

    @property
    def connections(self) -> list[str]:
        """The nsqd that it is connected to."""
        return [str(lane.address) for lane in self._lanes]

    @property
    def _has_room(self) -> bool:
        outbox = self._outbox
        return self._open and outbox.count < self._max_pending and outbox.size < self._max_pending_bytes

    async def _wait_for_room(self) -> None:
        while not self._has_room:
            if not self._open:
                raise Closed("this producer is not open")
            place = self._loop.create_future()
            self._for_room.append(place)
            try:
                await place
            except asyncio.CancelledError:
                if place.done() and not place.cancelled():
                    self._let_in(1)  # the room that it was given is somebody else's
                raise

    def _let_in(self, count: int) -> None:
        waiting = self._for_room
        while waiting and count > 0:
            place = waiting.popleft()
            if not place.done():
                place.set_result(None)
                count -= 1

    # --- the turn's end, and answers

    def _dispatch(self) -> None:
        """What the turn brought goes to an nsqd; where there is none it waits for one."""
        outbox, now = self._outbox, self._loop.time()
        outbox.end_turn()
        while outbox.waiting:
            lane = self._lane_for(outbox.waiting[0].topic)
            if lane is None:
                break
            batch = outbox.next(now)
            if batch is not None:
                lane.send(batch, now)
        if self._timer is None and outbox.count:
            self._timer = self._loop.call_later(self._timeout / _LOOKS, self._look)

    def _lane_for(self, topic: str) -> _Lane | None:
        """In turn, those that have the topic; or any, where none has it."""
        lanes = self._lanes
        if self._discovery is not None:
            having = self._discovery.having(topic)
            lanes = [lane for lane in lanes if lane.address in having] or lanes
        if not lanes:
            return None
        self._next_lane += 1
        return lanes[self._next_lane % len(lanes)]

    def _answered(self) -> None:
        outbox = self._outbox
        if self._for_room and outbox.size < self._max_pending_bytes:
            self._let_in(self._max_pending - outbox.count)
        if self._drained is not None and not outbox.count and not self._drained.done():
            self._drained.set_result(None)
        if outbox.waiting:
            self._turn.wake()

    def _look(self) -> None:
        """What waited too long fails; a connection that owes an answer for too long is given up."""
        self._timer = None
        before = self._loop.time() - self._timeout
        problems = self._keeper.problems if self._keeper is not None else ""
        self._outbox.expire(before, f"no nsqd in {self._timeout:g} s: {problems or 'none is known'}")
        for lane in list(self._lanes):
            lane.look(before)
        self._answered()
        if self._outbox.count:
            self._timer = self._loop.call_later(self._timeout / _LOOKS, self._look)

    # --- connections

    async def _converse(self, address: Address) -> None:
        connection = await connect(address, self._turn, self._manner)
        lane = _Lane(self, address, connection)
        self._lanes.append(lane)
        connection.begin(Frames(), lane)
        self._turn.wake()
        try:
            await connection.closed
        finally:
            connection.close()

    def _left(self, lane: _Lane) -> None:
        if lane in self._lanes:
            self._lanes.remove(lane)
