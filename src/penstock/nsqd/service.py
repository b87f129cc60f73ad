# cython: annotation_typing=False
"""What all connections of an nsqd share: the node, the limits, the two times, the turn. Knows asyncio; no protocol.

    loop turn:  connections receive ... --> end of the turn: write, answer, deliver, send
    timer:      alarms, what is due, heartbeats, flushes

Flushes and other slow work go to threads and come back into the loop.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from penstock.daemon import no_memory
from penstock.daemon.standing import TlsRequired
from penstock.nsqd.alarms import NEVER
from penstock.nsqd.gate import Gate
from penstock.nsqd.home import Clock
from penstock.nsqd.watch import Watch
from penstock.protocol.identify import Agreement, Offer
from penstock.protocol.inbox import SHARED
from penstock.protocol.parser import Limits

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from penstock.auth.permissions import Authority, Permissions, Who
    from penstock.broker.channel import Channel
    from penstock.daemon.logging import Logger
    from penstock.daemon.security import Security
    from penstock.log.work import Work
    from penstock.nsqd.connection import Wire
    from penstock.nsqd.lookup import Lookups
    from penstock.nsqd.node import Node
    from penstock.nsqd.options import Options
    from penstock.nsqd.session import Session

THREADS: Final = 2  # flushes of different topics may overlap; more would only queue at the device


class Service:
    """One nsqd in one loop."""

    def __init__(
        self, options: Options, logger: Logger, clock: Clock, security: Security, authority: Authority | None
    ) -> None:
        """`authority` knows what clients may do, where not all may do everything."""
        self.options = options
        self.logger = logger
        self.clock = clock
        self.node: Node  # set when it is restored
        self.lookups: Lookups  # set when it listens
        self.shared = bytearray(SHARED)
        self.limits = Limits(
            options.max_msg_size, options.max_body_size, options.max_rdy_count, options.max_req_timeout
        )
        self.offer = Offer(
            max_rdy_count=options.max_rdy_count,
            max_msg_timeout=options.max_msg_timeout,
            max_heartbeat_interval=options.max_heartbeat_interval,
            min_output_buffer_timeout=options.min_output_buffer_timeout,
            max_output_buffer_timeout=options.max_output_buffer_timeout,
            max_output_buffer_size=options.max_output_buffer_size,
            max_deflate_level=options.max_deflate_level,
            deflate=options.deflate,
            snappy=options.snappy,
            tls_v1=security.certificates.server is not None,
            auth_required=authority is not None,
            topology_region=options.topology_region,
            topology_zone=options.topology_zone,
        )
        self.defaults = Agreement(
            heartbeat_interval=CLIENT_TIMEOUT // 2,
            msg_timeout=options.msg_timeout,
            output_buffer_timeout=options.output_buffer_timeout,
        )
        self.doors, self.burden = security.doors, security.burden
        self._security = security
        self._authority = authority
        self._asking: set[asyncio.Task[None]] = set()
        self.connections: set[Wire] = set()
        self.of_session: dict[Session, Wire] = {}
        self._loop = asyncio.get_running_loop()
        self._pool = ThreadPoolExecutor(THREADS, "penstock-disk")
        self._at_work = 0
        self._ending = False
        self._outgoing: dict[Wire, None] = {}
        self._pumping: dict[Channel, None] = {}
        self._resting: list[Wire] = []
        self._watch = Watch()
        self._beats: dict[int, OrderedDict[Session, int]] = {}  # by interval: when the next one is due
        self._beat_at = NEVER  # when somebody may want a heartbeat, or a look; perhaps a little before
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0
        self.started = time.time_ns()
        self._skew = time.time_ns() - time.monotonic_ns()
        self.read_clock()
        self._begun = self.clock.now  # when this turn did

    # --- turns

    def read_clock(self) -> None:
        """Once in a turn, and where a delay begins: it counts from when it was asked for, however long the turn is."""
        self.clock.now = now = time.monotonic_ns()
        self.clock.wall = now + self._skew

    def begin_turn(self) -> None:
        """Something happens in this turn of the loop; its end is seen to."""
        if not self._ending:
            self._ending = True
            self.read_clock()
            self._begun = self.clock.now
            self._loop.call_soon(self._end_turn)

    def _end_turn(self) -> None:
        self._ending = False
        self.node.turn()
        while self._pumping:
            channel, _ = self._pumping.popitem()
            self.node.pump(channel)
        while self._outgoing:
            connection, _ = self._outgoing.popitem()
            connection.flush()
        self._set_timer()
        self.node.meters.turn_over(time.monotonic_ns() - self._begun)

    def pump(self, channel: Channel) -> None:
        """It may have something to give at the end of the turn."""
        self._pumping[channel] = None

    def outgoing(self, connection: Wire) -> None:
        """It has something to send at the end of the turn."""
        self._outgoing[connection] = None
        self.begin_turn()

    # --- resting

    def rest(self, connection: Wire) -> None:
        """It wants to be told in a moment, with all others that do."""
        if not self._resting:
            self._loop.call_later(REST, self._rested)
        self._resting.append(connection)

    def _rested(self) -> None:
        resting, self._resting = self._resting, []
        for connection in resting:
            connection.rested()

    # --- slow work

    def run(self, work: Work, done: Callable[[], None]) -> None:
        """On a thread, and back here."""
        self._at_work += 1

        def back() -> None:
            self._at_work -= 1
            self.begin_turn()
            work.finish()
            done()

        def call() -> None:
            try:
                work.run()
            except MemoryError:
                no_memory.end()
            self._loop.call_soon_threadsafe(back)

        self._pool.submit(call)

    # --- time

    def _set_timer(self) -> None:
        when = min(self.node.next_time(), self._beat_at)
        if self._timer is not None and self._timer_at <= when:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = when
        self._timer = self._loop.call_later(max(0, when - time.monotonic_ns()) / 1e9, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self.begin_turn()
        self.read_clock()
        self.node.tick()
        for interval, queue in list(self._beats.items()):
            self._beat(interval, queue)
        for session, why in self._watch.look(self.clock.now):
            self.of_session[session].drop(why)
        self._beat_at = self._watch.next
        for queue in self._beats.values():
            if queue:
                self._beat_at = min(self._beat_at, next(iter(queue.values())))

    def admit(self, session: Session) -> None:
        """It is new here."""
        required = self.options.tls_required is not TlsRequired.NO
        if required or self._authority is not None:
            session.gate = Gate(session, None if self._authority is None else self.ask, tls_required=required)
        self._watch.add(session, self.clock.now)
        self._beat_at = min(self._beat_at, self._watch.next)
        self.beats(session)

    def release(self, session: Session) -> None:
        """It is gone."""
        self._watch.remove(session)
        self.still(session)

    def beats(self, session: Session) -> None:
        """Heartbeats for it from now on, at the interval that it agreed to."""
        self.still(session)
        session.beating = interval = session.agreement.heartbeat_interval
        if interval:
            self._beats.setdefault(interval, OrderedDict())[session] = self.clock.now + interval
            self._beat_at = min(self._beat_at, self.clock.now + interval)

    def still(self, session: Session) -> None:
        """No heartbeats for it any more, and nothing that holds it."""
        queue = self._beats.get(session.beating)
        if queue is not None:
            queue.pop(session, None)
            if not queue:
                del self._beats[session.beating]

    def _beat(self, interval: int, queue: OrderedDict[Session, int]) -> None:
        now = self.clock.now
        while queue:
            session, when = next(iter(queue.items()))
            if when > now:
                return
            connection = self.of_session[session]
            if now - connection.heard >= 2 * interval:
                self.still(session)
                connection.drop("no answer to two heartbeats")
                continue
            session.heartbeat()
            queue[session] = now + interval
            queue.move_to_end(session)

    # --- what protects it

    def tls_context(self) -> ssl.SSLContext:
        """Of the moment."""
        context = self._security.certificates.server
        if context is None:
            raise AssertionError("TLS is offered with a certificate only")
        return context

    def ask(self, who: Who, then: Callable[[Permissions | Exception], None]) -> None:
        """What this client may do, or why that is not known: in a later turn."""
        task = self._loop.create_task(self._ask(who, then))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _ask(self, who: Who, then: Callable[[Permissions | Exception], None]) -> None:
        if self._authority is None:
            raise AssertionError("nobody to ask")
        found: Permissions | Exception
        try:
            answer = self._authority.ask(who)
            found = await answer if isinstance(answer, Awaitable) else answer
        except Exception as error:  # noqa: BLE001 - whatever goes wrong is answered
            found = error
        self.begin_turn()
        then(found)

    # --- ending

    async def stop(self, grace: float) -> None:
        """Let what is written go out, then write everything down."""
        deadline = self._loop.time() + grace
        for connection in list(self.connections):
            connection.finish()
        while (self.connections or self._at_work) and self._loop.time() < deadline:
            await asyncio.sleep(0.01)
        for connection in list(self.connections):
            connection.drop("stopping")
        if self._timer is not None:
            self._timer.cancel()
        await self._loop.run_in_executor(None, self._pool.shutdown)
        while self._at_work:
            await asyncio.sleep(0)  # what the threads did comes back
        self.read_clock()
        self.node.close()


REST: Final = 0.001  # seconds
CLIENT_TIMEOUT: Final = 60 * 10**9  # NSQ's: a heartbeat comes after half of it
