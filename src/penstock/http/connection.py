# cython: annotation_typing=False
"""One client's connection: answers in the order of the requests, and no more in memory than has to be.

    bytes --> held --> parser --> requests --> answers --> transport

Each arrow waits while what is behind it has to be waited for: an answer that is still being made, or a client that
does not take those it has. Then bytes are held unparsed and the socket is not read. When a wait takes too long is only
written down here, as `deadline`; the server looks at it.
"""

from __future__ import annotations

import asyncio
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, cast

from penstock.errors import Overloaded
from penstock.http.later import Asker, Later
from penstock.http.limits import LARGE, SLICE, TURN, time_for
from penstock.http.parser import HEAD, IDLE, TIMED_OUT, Parser
from penstock.http.response import Response
from penstock.http.stream import send

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from penstock.http.request import Request
    from penstock.http.response import Piece
    from penstock.http.server import Server

# What is waited for, and `LEAVING`, after which nothing is
ANSWER, CLIENT, LOOP, LEAVING = 1, 2, 4, 8

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_CLOSE: Final = b"Connection: close\r\n"
_KEEP: Final = b"Connection: keep-alive\r\n"
_CHUNKED: Final = b"Transfer-Encoding: chunked\r\n"
_NOTHING: Final = memoryview(b"")

P = ParamSpec("P")


def _alone(method: Callable[Concatenate[Connection, P], None]) -> Callable[Concatenate[Connection, P], None]:
    """What goes wrong in it is a bug, and ends this connection and nothing else."""

    def alone(self: Connection, /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            method(self, *args, **kwargs)
        except Exception as problem:  # noqa: BLE001
            self.cut(problem)

    return alone


class Connection(Asker):
    """An `asyncio.Protocol`, made by a server for each client.

    No exception leaves it: a handler's is answered 500, any other cuts it.
    """

    __slots__ = (
        "_asked", "_begun", "_ended", "_heavy", "_held", "_out", "_parser", "_phase", "_reading", "_server", "_taken",
        "_transport", "_waits", "_work", "deadline",
    )  # fmt: skip

    def __init__(self, server: Server) -> None:
        self._server = server
        self._held = _NOTHING
        self._heavy = False  # something is held for it, and counted
        self._out = b""  # what a turn gathers for one write
        self._waits = 0
        self._phase = IDLE  # of the parser, when the deadline was set
        self._reading = True
        self._ended = False  # the client sends nothing more, but may wait for answers
        self._asked: Request | None = None  # whose answer is being made
        self._begun: float | None = None
        self._work: asyncio.Future[Any] | None = (
            None  # a handler or a stream: nobody waits for it when the client is gone
        )
        self._taken: asyncio.Future[None] | None = None  # what a stream waits for
        self.deadline = inf

    # --- what the loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        server = self._server
        if server.doors is not None and not server.doors.enter(self, transport):
            return
        self._transport = cast("asyncio.Transport", transport)
        self._parser = Parser(server.find, server.limits, transport.get_extra_info("peername"), server.guard)
        server.connections.add(self)
        self.stop()

    def connection_lost(self, exc: Exception | None) -> None:
        self._waits |= LEAVING
        self._held = _NOTHING
        self._parser.close()
        if self._work is not None:
            self._work.cancel()
        self._server.left(self)

    def data_received(self, data: bytes) -> None:
        try:
            if self._waits or len(data) > SLICE:
                self._hold(data)
            else:
                self._parser.feed(data)
            self._go_on()
            if self._heavy or self._parser.phase != IDLE or self._held or self._waits & CLIENT:
                self._weigh()
        except Exception as problem:  # noqa: BLE001 - as in `_alone`, at once
            self.cut(problem)

    def eof_received(self) -> bool:
        """Whether to stay, for answers that are still to come."""
        self._ended = True
        return 0 < self._waits < LEAVING and self._transport.can_write_eof()

    def pause_writing(self) -> None:
        self._waits |= CLIENT
        self._weigh()
        self.deadline = self._server.now + time_for(self._unsent(), self._server.limits.body_time)

    def resume_writing(self) -> None:
        if self._taken is not None:
            if not self._taken.done():
                self._taken.set_result(None)
            self._taken = None
        self._have(CLIENT)
        self._weigh()

    # --- what the server calls

    @_alone
    def stop(self) -> None:
        """Leave now if nothing is in hand, and the server is stopping."""
        self._settle()

    @_alone
    def time_out(self) -> None:
        """The deadline has passed."""
        if self._waits:
            self._transport.abort()
        elif self._parser.phase == IDLE:
            self._leave()
        else:
            self._parser.refuse(TIMED_OUT)
            self._go_on()

    def forget(self) -> None:
        """Who may do what has changed."""
        self._parser.forget()

    def drop(self, why: str) -> None:
        """Too much is held for it."""
        self.cut(Overloaded(why))

    def cut(self, problem: BaseException | None = None) -> None:
        """Close at once, whatever is unsent."""
        if problem is not None:
            self._server.report(None, problem)
        self._transport.abort()

    def _weigh(self) -> None:
        size = len(self._held) + self._parser.held + (self._unsent() if self._waits & CLIENT else 0)
        self._heavy = size > 0
        self._server.burden.hold(self, size)

    # --- requests

    def _hold(self, data: bytes) -> None:
        if self._waits < LEAVING:
            self._held = memoryview(bytes(self._held) + data if self._held else data)

    def _go_on(self) -> None:
        """Answer what is there, in order, until something has to be waited for."""
        requests = self._parser.requests
        turn = TURN
        while not self._waits:
            if requests:
                if not turn:
                    self._waits |= LOOP
                    self.deadline = inf
                    asyncio.get_running_loop().call_soon(self._have, LOOP)
                    break
                turn -= 1
                self._answer(requests.pop(0))
            elif self._held:
                self._feed_held()
            else:
                break
        if self._out:
            self._flush()
        self._settle()

    def _feed_held(self) -> None:
        """A slice of what is held, or as much of a body as is there: no request hides in that."""
        size = self._parser.missing or SLICE
        now, self._held = self._held[:size], self._held[size:]
        if self._parser.missing:
            self._parser.feed_body(now)
        else:
            self._parser.feed(bytes(now))

    @_alone
    def _have(self, what: int) -> None:
        """What was waited for is there."""
        self._waits &= ~what
        self._take_up()

    def _take_up(self) -> None:
        """Go on, if nothing else is waited for."""
        self._phase = -1  # the time of whatever comes next begins now
        if not self._waits:
            self._go_on()
        elif not self._waits & (CLIENT | LEAVING):
            self.deadline = inf

    def _settle(self) -> None:
        """Leave when all is done, ask for what the client holds back, read or do not read, and set the deadline."""
        if self._waits:
            if self._held and self._reading:
                self._reading = False
                self._transport.pause_reading()
            return
        server, parser = self._server, self._parser
        phase = parser.phase
        if parser.finished or self._ended or (server.stopping and phase == IDLE):
            self._leave()
            return
        if parser.awaits_continue:
            parser.awaits_continue = False
            self._transport.write(_CONTINUE)
        if phase == IDLE:
            self._phase = IDLE
            self.deadline = server.idle_deadline
        elif phase != self._phase:
            self._phase = phase
            limits = server.limits
            time = limits.head_time if phase == HEAD else time_for(parser.expected, limits.body_time)
            self.deadline = server.now + time
        if not self._reading:
            self._read_on()

    def _read_on(self) -> None:
        self._reading = True
        self._transport.resume_reading()

    def _leave(self) -> None:
        """Close when all is written; if the client may still be sending, not before it stops or its time is up.

        A socket that is closed with bytes unread is reset, and the answer lost.
        """
        self._waits |= LEAVING
        self._held = _NOTHING
        linger = self._parser.refused and not self._ended and self._transport.can_write_eof()
        limits = self._server.limits
        self.deadline = self._server.now + time_for(self._unsent(), limits.linger_time if linger else limits.body_time)
        if not linger:
            self._transport.close()
            return
        self._transport.write_eof()
        if not self._reading:
            self._read_on()

    # --- answers

    def _answer(self, request: Request) -> None:
        server = self._server
        route = request.route
        self._begun = None if route.quiet or server.log is None else server.clock()
        try:
            answer = route.handler(request)
            if isinstance(answer, Later):
                if answer.known is None:
                    answer.then(self)
                    self._wait(request)
                    return
                answer = answer.known
            elif not isinstance(answer, Response):
                self._wait_for(answer, request)
                return
        except Exception as problem:  # noqa: BLE001 - whatever a handler does wrong is answered
            answer = server.failed(request, problem)
        self._reply(request, answer)

    def _wait(self, request: Request) -> None:
        self._asked = request
        self._waits |= ANSWER
        self.deadline = inf

    def _wait_for(self, answer: Awaitable[Response], request: Request) -> None:
        self._work = task = asyncio.ensure_future(answer)
        task.add_done_callback(partial(self._answered, request))
        self._server.at_work.add(task)
        self._wait(request)

    @_alone
    def _answered(self, request: Request, task: asyncio.Future[Response]) -> None:
        self._server.at_work.discard(task)
        self._work = None
        if task.cancelled() and self._waits >= LEAVING:
            return
        try:
            answer = task.result()
            if not isinstance(answer, Response):
                raise TypeError(f"no Response, but {answer!r}")
        except (Exception, asyncio.CancelledError) as problem:  # noqa: BLE001
            answer = self._server.failed(request, problem)
        self.hear(answer)

    def hear(self, response: Response) -> None:
        """What was asked last can be answered, if the client is still there."""
        request, self._asked = self._asked, None
        if request is None or self._waits >= LEAVING:
            return
        self._waits &= ~ANSWER
        try:
            self._reply(request, response)
            self._take_up()
        except Exception as problem:  # noqa: BLE001 - as in `_alone`
            self.cut(problem)

    def _reply(self, request: Request, response: Response) -> None:
        server, begun = self._server, self._begun
        if begun is not None and server.log is not None:
            server.log(request, response.status, server.clock() - begun)
        self._phase = IDLE
        if server.stopping:
            self._make_last(request)
        body = response.body
        if not isinstance(body, bytes):
            self._begin_stream(request, response, body)
        elif request.keep_alive and request.minor and len(body) <= LARGE and request.method != b"HEAD":
            whole = response.whole(server.date)
            self._add(self._out + whole if self._out else whole)
        else:
            self._reply_with(request, response.head, body)

    def _reply_with(self, request: Request, head: bytes, body: bytes) -> None:
        """What is not said to everybody."""
        out = self._out + head
        if not (request.keep_alive and request.minor):
            out += _KEEP if request.keep_alive else _CLOSE
        out += self._server.date
        if request.method != b"HEAD":
            if len(body) > LARGE:
                self._transport.write(out)
                out = body
            else:
                out += body
        self._add(out)

    def _add(self, out: bytes) -> None:
        self._out = out
        if len(out) > LARGE:
            self._flush()

    def _make_last(self, request: Request) -> None:
        """The answer to this request is the last, unless the client has begun another."""
        parser = self._parser
        if not parser.requests and not self._held and parser.phase == IDLE:
            request.keep_alive = False
            parser.finished = True

    def _begin_stream(self, request: Request, response: Response, blocks: AsyncIterator[Piece]) -> None:
        chunked = response.length is None and request.minor == 1
        head = response.head
        if response.length is None and not chunked:  # then its end is the connection's
            request.keep_alive = False
            self._parser.finished = True
            self._parser.requests.clear()
        if chunked:
            head += _CHUNKED
        if not (request.keep_alive and request.minor):
            head += _KEEP if request.keep_alive else _CLOSE
        self._out += head + self._server.date
        self._flush()
        if request.method == b"HEAD":
            return
        sending = send(
            blocks, response.length, chunked=chunked, write=self._transport.write, taken=self._client_has_taken
        )
        self._work = stream = asyncio.ensure_future(sending)
        stream.add_done_callback(partial(self._streamed, request))
        self._server.at_work.add(stream)
        self._waits |= ANSWER
        if not self._waits & CLIENT:
            self.deadline = inf

    @_alone
    def _streamed(self, request: Request, stream: asyncio.Future[None]) -> None:
        self._server.at_work.discard(stream)
        self._work = None
        if stream.cancelled():
            self._transport.abort()
        elif (problem := stream.exception()) is not None:
            self._server.report(request, problem)
            self._transport.abort()
        else:
            self._have(ANSWER)

    async def _client_has_taken(self) -> None:
        """Wait until there is room for more, and let others have their turn in any case."""
        await asyncio.sleep(0)
        while self._waits & CLIENT:
            if self._taken is None:
                self._taken = asyncio.get_running_loop().create_future()
            await self._taken

    def _flush(self) -> None:
        out, self._out = self._out, b""
        self._transport.write(out)

    def _unsent(self) -> int:
        return self._transport.get_write_buffer_size()
