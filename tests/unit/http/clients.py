"""A client on a wire that is made of bytes: what the tests of the server say, and what they are answered."""

from __future__ import annotations

import asyncio
import io
from http.client import HTTPResponse
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from penstock.http import Handler, Request, Response, Routes, Server, text
from penstock.http.connection import Connection

if TYPE_CHECKING:
    import socket

NOON = 1_767_355_445.0  # Fri, 02 Jan 2026 12:04:05 GMT


class Time:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class Wire(asyncio.Transport):
    """The transport of a client that takes what it is sent, unless it is told to be `slow`."""

    def __init__(self, *, peer: object = ("127.0.0.1", 5555), can_end: bool = True) -> None:
        super().__init__({"peername": peer})
        self.sent = bytearray()
        self.writes = 0
        self.unsent = 0
        self.slow = False
        self.reading = True
        self.ended = self.closed = self.cut = False
        self._can_end = can_end

    def join(self, connection: Connection) -> None:
        self._connection = connection
        connection.connection_made(self)

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        self.sent += data
        self.writes += 1
        if self.slow:
            full = self.unsent > 0
            self.unsent += len(data)
            if not full:
                self._connection.pause_writing()

    def take(self) -> None:
        """The client takes all that it was sent, and goes on doing so."""
        self.slow = False
        if self.unsent:
            self.unsent = 0
            self._connection.resume_writing()

    def write_eof(self) -> None:
        self.ended = True

    def can_write_eof(self) -> bool:
        return self._can_end

    def close(self) -> None:
        self._lose()
        self.closed = True

    def abort(self) -> None:
        self._lose()
        self.cut = True

    def _lose(self) -> None:
        if not self.closed and not self.cut:
            self._connection.connection_lost(None)

    def is_closing(self) -> bool:
        return self.closed or self.cut

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True

    def get_write_buffer_size(self) -> int:
        return self.unsent


class Client:
    """Says bytes to a server and reads its answers."""

    def __init__(self, server: Server, **wire: Any) -> None:
        self.wire = Wire(**wire)
        self.connection = Connection(server)
        self.wire.join(self.connection)
        self._asked: list[str] = []

    def say(self, data: bytes) -> Client:
        """What the socket would bring, in one piece; nothing where it is not read any more."""
        if self.wire.reading and not self.wire.is_closing():
            self.connection.data_received(data)
        return self

    def end(self) -> None:
        """The client sends nothing more; a transport closes itself unless it is asked to stay."""
        if not self.connection.eof_received():
            self.wire.close()

    def answers(self, *methods: str) -> list[Answer]:
        return read_answers(bytes(self.wire.sent), *methods)

    @property
    def statuses(self) -> list[int]:
        return [answer.status for answer in self.answers()]

    @property
    def bodies(self) -> list[bytes]:
        return [answer.body for answer in self.answers()]


class _Bytes(io.BytesIO):
    def close(self) -> None:
        """The next answer is read from it too."""


class _Socket:
    def __init__(self, data: bytes) -> None:
        self.file = _Bytes(data)

    def makefile(self, _mode: str) -> _Bytes:
        return self.file


def read_answers(data: bytes, *methods: str) -> list[Answer]:
    """The answers that stand in the bytes, as Python's own client reads them; to GET where no method is named."""
    sock = _Socket(data)
    answers: list[Answer] = []
    while sock.file.tell() < len(data):
        method = methods[len(answers)] if len(answers) < len(methods) else "GET"
        response = HTTPResponse(cast("socket.socket", sock), method=method)
        response.begin()
        answers.append(Answer(response.status, dict(response.getheaders()), response.read()))
    return answers


def serve(routes: Routes, **options: Any) -> Server:
    options.setdefault("clock", Time())
    options.setdefault("on_error", _fail)
    return Server(routes.find, wall=lambda: NOON, **options)


def _fail(_request: object, problem: BaseException) -> None:
    raise AssertionError("an error inside") from problem


def echo(request: Request) -> Response:
    """The body, or what was asked for."""
    return text(request.body or request.target)


def echoing(max_body: int = 1 << 20) -> Routes:
    """GET /echo, POST /echo and POST /small, which takes ten bytes."""
    routes = Routes()
    routes.add("GET", "/echo", echo)
    routes.add("POST", "/echo", echo, max_body=max_body, too_big="MSG_TOO_BIG")
    routes.add("POST", "/small", echo, max_body=10)
    return routes


def one(handler: Handler) -> Routes:
    """GET / and POST / with this handler."""
    routes = Routes()
    routes.add("GET", "/", handler)
    routes.add("POST", "/", handler)
    return routes


def get(path: str = "/echo", *headers: str) -> bytes:
    return _head("GET", path, headers)


def post(body: bytes, path: str = "/echo", *headers: str) -> bytes:
    return _head("POST", path, (*headers, f"Content-Length: {len(body)}")) + body


def chunked(*chunks: bytes, path: str = "/echo") -> bytes:
    body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in (*chunks, b""))
    return _head("POST", path, ("Transfer-Encoding: chunked",)) + body


def _head(method: str, path: str, headers: tuple[str, ...]) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: a", *headers, "", ""]).encode()
