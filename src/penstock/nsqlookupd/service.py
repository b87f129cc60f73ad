"""What connections and HTTP handlers of an nsqlookupd share: registrations, who waits, the time. Knows asyncio."""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import TYPE_CHECKING

from penstock.nsqlookupd.registrations import NEVER, Registrations
from penstock.nsqlookupd.waiting import Waiting
from penstock.nsqlookupd.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.daemon.logging import Logger
    from penstock.nsqlookupd.connection import Connection
    from penstock.nsqlookupd.options import Options
    from penstock.stream.doors import Doors


def steady_clock() -> Callable[[], int]:
    """ns of the epoch as the wall says now; from now on it goes forward only."""
    skew = time.time_ns() - time.monotonic_ns()
    return lambda: time.monotonic_ns() + skew


class Service:
    """One nsqlookupd in one loop."""

    def __init__(self, options: Options, logger: Logger, clock: Callable[[], int]) -> None:
        """The clock counts ns of the epoch, and never goes back."""
        self.options = options
        self.logger = logger
        self.doors: Doors | None = None  # limits on connections, where there are any
        self.about = b""  # what IDENTIFY is answered: known when it listens
        self.run = secrets.token_hex(4)  # so that no revision is taken for one from before a restart
        self.waiting = Waiting()
        self.registrations = Registrations(
            options.inactive_producer_timeout, options.tombstone_lifetime, self.waiting.changed
        )
        self.connections: set[Connection] = set()
        self.watch: Watch[Connection] = Watch(options.inactive_producer_timeout)
        self.started = clock()
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = NEVER

    def advance(self) -> int:
        """It is now, for the registrations as well."""
        now = self._clock()
        self.registrations.advance(now)
        return now

    def set_timer(self) -> None:
        """What time changes is changed when it is time: somebody may wait for it."""
        when = min(self.registrations.next_time, self.watch.next)
        if when >= self._timer_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = when
        self._timer = self._loop.call_later(max(0, when - self._clock()) / 1e9, self._ring)

    def _ring(self) -> None:
        self._timer, self._timer_at = None, NEVER
        for connection, why in self.watch.look(self.advance()):
            connection.drop(why)
        self.set_timer()

    def stop(self) -> None:
        """Nobody is waited for, and nsqd go elsewhere."""
        if self._timer is not None:
            self._timer.cancel()
        for connection in list(self.connections):
            connection.close()
