"""What connections share: where they come from, what time it is, who is told, and how all of it stops."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

from penstock.errors import HttpError
from penstock.http.answers import error
from penstock.http.connection import Connection
from penstock.http.limits import Limits
from penstock.stream.doors import Burden

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.http.request import Request
    from penstock.http.response import Response
    from penstock.http.routes import Route
    from penstock.stream.doors import Doors

TICK: Final = 1.0
BACKLOG: Final = 4096  # with 100, a burst of clients waits for seconds

_INTERNAL_ERROR: Final = error(500, "INTERNAL_ERROR")
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Server:
    """Answers each request by the route that `find` says: that of a `Routes`.

    `log` is told of every answer, with its status and the seconds it took, unless the route is quiet; it may be set at
    any time, and None costs nothing. `on_error` is told of what went wrong in a handler, or else with no request. The
    time is read once a second, for all connections; more often only where there is a `log`. `guard` is asked about each
    request before its body is read, and may give a route that refuses it; `forget` where it may have changed its mind.
    `doors` and `burden` are limits that it shares with other ports.
    """

    def __init__(
        self,
        find: Callable[[bytes, bytes], Route],
        *,
        limits: Limits | None = None,
        guard: Callable[[Request], Route | None] | None = None,
        doors: Doors | None = None,
        burden: Burden | None = None,
        log: Callable[[Request, int, float], None] | None = None,
        on_error: Callable[[Request | None, BaseException], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.find = find
        self.limits = limits or Limits()
        self.guard = guard
        self.doors = doors
        self.burden = Burden(0) if burden is None else burden
        self.log = log
        self.clock = clock
        self.stopping = False
        self.connections: set[Connection] = set()
        self.at_work: set[asyncio.Future[Any]] = set()  # handlers and streams, also those whose client is gone
        self._on_error = on_error
        self._wall = wall
        self._listeners: list[asyncio.Server] = []
        self._timer: asyncio.TimerHandle | None = None
        self._alone = asyncio.Event()
        self.sweep()

    async def listen(
        self, sock: socket.socket, wrap: Callable[[asyncio.Protocol], asyncio.BaseProtocol] | None = None
    ) -> None:
        """Take clients from a bound socket, which is the server's from now on; `wrap` puts TLS before each."""
        wrap = wrap or (lambda connection: connection)
        loop = asyncio.get_running_loop()
        create = loop.create_unix_server if sock.family == socket.AF_UNIX else loop.create_server
        listener = await create(lambda: wrap(cast("asyncio.Protocol", Connection(self))), sock=sock, backlog=BACKLOG)
        self._listeners.append(listener)
        if self._timer is None:
            self._tick()

    async def stop(self, grace: float) -> None:
        """Take no client any more, answer what is in hand, close; what is left after `grace` seconds is cut off."""
        self.stopping = True
        for listener in self._listeners:
            listener.close()
        for connection in tuple(self.connections):
            connection.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._finish()
        for connection in tuple(self.connections):
            connection.cut()
        for task in tuple(self.at_work):
            task.cancel()
        await self._finish()
        if self._timer is not None:
            self._timer.cancel()

    async def _finish(self) -> None:
        if self.connections:
            await self._alone.wait()
        while self.at_work:
            await asyncio.wait(self.at_work)

    # --- time

    def sweep(self) -> None:
        """Read the time, and end the connections whose deadline has passed; called every second while it listens."""
        self.now = self.clock()
        self.idle_deadline = self.now + self.limits.idle_time
        self.date = _date(self._wall())
        for connection in tuple(self.connections):
            if connection.deadline <= self.now:
                connection.time_out()

    def _tick(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(TICK, self._tick)
        self.sweep()

    def forget(self) -> None:
        """The guard is asked again about what it let pass before."""
        for connection in self.connections:
            connection.forget()

    # --- what connections tell

    def left(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self.burden.forget(connection)
        if self.doors is not None:
            self.doors.leave(connection)
        if self.stopping and not self.connections:
            self._alone.set()

    def failed(self, request: Request, problem: BaseException) -> Response:
        """The answer of a handler that raised."""
        if isinstance(problem, HttpError):
            return error(problem.status, str(problem))
        self.report(request, problem)
        return _INTERNAL_ERROR

    def report(self, request: Request | None, problem: BaseException) -> None:
        if self._on_error is not None:
            with suppress(Exception):  # there is nobody left to tell
                self._on_error(request, problem)


def _date(seconds: float) -> bytes:
    """The last header of an answer, and the empty line behind it."""
    at = time.gmtime(seconds)
    day = f"{_DAYS[at.tm_wday]}, {at.tm_mday:02} {_MONTHS[at.tm_mon - 1]} {at.tm_year}"
    return f"Date: {day} {at.tm_hour:02}:{at.tm_min:02}:{at.tm_sec:02} GMT\r\n\r\n".encode()
