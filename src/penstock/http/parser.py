# cython: annotation_typing=False
"""Bytes in, requests out. Knows HTTP/1 and which route a request is for; no socket, no time.

    IDLE --first byte--> HEAD --empty line--> BODY --last byte--> IDLE

What cannot become a request becomes one all the same, with a route that answers what is wrong: so its answer keeps
its place behind those before it. It is the last: what follows it is not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpRequestParser

from penstock.http.answers import error
from penstock.http.head import Head, learn
from penstock.http.limits import SLICE, Limits
from penstock.http.request import Request
from penstock.http.routes import BAD_REQUEST, Route, always

if TYPE_CHECKING:
    from collections.abc import Callable

IDLE, HEAD, BODY = range(3)

TIMED_OUT: Final = always(error(408, "REQUEST_TIMEOUT"), quiet=True)
LONG_TARGET: Final = always(error(414, "URI_TOO_LONG"), quiet=True)
UNEXPECTED: Final = always(error(417, "EXPECTATION_FAILED"), quiet=True)
LONG_HEAD: Final = always(error(431, "HEADERS_TOO_BIG"), quiet=True)
ENCODED: Final = always(error(501, "UNSUPPORTED_TRANSFER_ENCODING"), quiet=True)
OTHER_VERSION: Final = always(error(505, "HTTP_VERSION_NOT_SUPPORTED"), quiet=True)

HEADER: Final = 32  # what a header costs beside its bytes: many tiny ones take no less to keep


class Parser:
    """One connection's requests. Those that are whole stand in `requests`, to be taken from the front."""

    __slots__ = (
        "_body", "_find", "_guard", "_head", "_headers", "_http", "_limits", "_peer", "_request", "_room", "_seen",
        "_silent", "_size", "_target", "_upgrades", "awaits_continue", "expected", "finished", "missing", "phase",
        "refused", "requests",
    )  # fmt: skip

    def __init__(
        self,
        find: Callable[[bytes, bytes], Route],
        limits: Limits,
        peer: object = None,
        guard: Callable[[Request], Route | None] | None = None,
    ) -> None:
        """`guard` gives the route that refuses a request whose head is known, if it may not go on."""
        self.requests: list[Request] = []
        self.phase = IDLE
        self.finished = False  # nothing more is read
        self.refused = False  # and the client does not know it
        self.awaits_continue = False  # it sends the body when it is asked to
        self.expected = 0  # bytes of that body at most
        self.missing = 0  # bytes that are all of the body that is read, where its length was told
        self._find = find
        self._guard = guard
        self._limits = limits
        self._peer = peer
        self._http: HttpRequestParser = HttpRequestParser(self)
        self._head: Head | None = None
        self._request: Request | None = None  # whose body is read
        self._target = b""
        self._headers: dict[bytes, bytes] = {}
        self._room = limits.head
        self._body: list[bytes] = []
        self._size = 0  # of the body, as far as it is there
        self._upgrades = False  # httptools takes what follows for another protocol
        self._silent = 0  # bytes that changed nothing of what was
        self._seen: tuple[int, ...] = ()

    @property
    def held(self) -> int:
        """Bytes of a request that is not whole."""
        return self._size + len(self._target) + self._limits.head - self._room

    def feed(self, data: bytes) -> None:
        """Take the next bytes, at most SLICE of them."""
        head = self._head
        if head is not None and self.phase == IDLE and not self.finished:
            request = head.again(data, 0)
            if request is not None:
                self.requests.append(request)
                if head.end == len(data):
                    return
                data = self._feed_known(head, data)
        if not data or self.finished:
            return
        begun, count = self.phase, len(self.requests)
        try:
            self._parse(data)
        except HttpParserError as problem:
            if self.finished:  # whatever it is now: what a callback raised to end it, or bytes that nobody reads
                return
            if isinstance(problem, HttpParserCallbackError):
                raise
            self.refuse(BAD_REQUEST)
        if self.phase != IDLE:
            self._bound(len(data))
        elif begun == IDLE and len(self.requests) == count + 1:
            self._head = learn(data, self.requests[count])

    def feed_body(self, data: memoryview) -> None:
        """Take the next bytes, at most as many as are `missing`."""
        self._http.feed_data(data)

    def _parse(self, data: bytes) -> None:
        try:
            self._http.feed_data(data)
        except HttpParserUpgrade as upgrade:
            self._say_again()
            rest = data[upgrade.args[0] :]
            if rest and not self.finished:
                self._parse(rest)

    def refuse(self, route: Route) -> None:
        """Answer by this route what is there of a request, and read no more."""
        request = self._request or Request(b"", self._target, b"", self._headers, route, self._peer)
        request.route = route
        request.keep_alive = False
        self.refused = True
        self._complete(request)

    def forget(self) -> None:
        """What the guard said of the last request is no rule for the next that looks like it."""
        self._head = None

    def close(self) -> None:
        """Nothing is fed any more: lets go of what goes round in a circle, for the collector may be off."""
        self.finished = True
        self._http = None  # type: ignore[assignment]

    def _feed_known(self, head: Head, data: bytes) -> bytes:
        """Behind the first, take all requests that begin as the one before; what is left."""
        at = head.end
        while (request := head.again(data, at)) is not None:
            self.requests.append(request)
            at = head.end
            if at == len(data):
                return b""
        return data[at:]

    def _complete(self, request: Request) -> None:
        self.requests.append(request)
        self.finished = not request.keep_alive
        self.phase = IDLE
        self.awaits_continue = False
        self._request = None
        self._target = b""
        self._headers = {}
        self._room = self._limits.head
        self._body = []
        self._size = self.missing = 0
        self._seen = ()

    def _bound(self, size: int) -> None:
        """Refuse what is endless and not told of here: a header, which httptools keeps until it ends, and chunks' own.

        Where a limit is told, it holds to the byte, wherever the bytes were cut; this one is only to hold at all.
        """
        seen = (self.phase, len(self._target), self._room, self._size)
        if seen != self._seen:
            self._seen = seen
            self._silent = 0
        self._silent += size
        if self._silent > self._limits.head + 2 * SLICE:
            self.refuse(LONG_HEAD)

    # --- what httptools calls

    def on_message_begin(self) -> None:
        self.phase = HEAD

    def on_url(self, part: bytes) -> None:
        self._target += part
        if len(self._target) > self._limits.target:
            self._stop(LONG_TARGET)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._room -= len(name) + len(value) + HEADER
        if self._room < 0:
            self._stop(LONG_HEAD)
        if self.phase == BODY:  # a trailer, and nobody here asks for one
            return
        name = name.lower()
        headers = self._headers
        headers[name] = headers[name] + b", " + value if name in headers else value

    def on_headers_complete(self) -> None:
        self.phase = BODY
        if b"upgrade" in self._headers and self._http.should_upgrade() and self._http.get_method() != b"CONNECT":
            self._upgrades = True
        else:
            self._begin_request()

    def on_body(self, part: bytes) -> None:
        request = self._request
        if request is None:
            return
        self._body.append(part)
        self._size += len(part)
        self.missing = max(0, self.missing - len(part))
        self.awaits_continue = False
        if self._size > request.route.max_body:
            self._stop(_too_big(request.route))

    def on_message_complete(self) -> None:
        request = self._request
        if request is not None:
            request.body = b"".join(self._body)
            self._complete(request)

    # --- what is asked of a head

    def _begin_request(self) -> None:
        headers = self._headers
        method = self._http.get_method()
        path, _, query = self._target.partition(b"?")
        route = self._find(method, path)
        self._request = request = Request(method, path, query, headers, route, self._peer)
        self._check_version(request, headers)
        if self._guard is not None and (refusal := self._guard(request)) is not None:
            request.route = refusal
        if b"transfer-encoding" in headers or b"content-length" in headers:
            self._check_body(request, headers)
        if method == b"CONNECT":  # what follows is meant for somebody else
            request.keep_alive = False

    def _check_version(self, request: Request, headers: dict[bytes, bytes]) -> None:
        version = self._http.get_http_version()
        if version not in ("1.0", "1.1"):
            self._stop(OTHER_VERSION)
        request.minor = int(version[2])
        request.keep_alive = self._http.should_keep_alive()
        host = headers.get(b"host")
        if b"," in host if host is not None else request.minor:  # two of them, or none
            self._stop(BAD_REQUEST)

    def _check_body(self, request: Request, headers: dict[bytes, bytes]) -> None:
        route = request.route
        encoding = headers.get(b"transfer-encoding")
        if encoding is None:
            self.expected = self.missing = size = int(headers.pop(b"content-length"))
        elif encoding.strip().lower() != b"chunked":
            self._stop(ENCODED)
        elif not request.minor:  # HTTP/1.0 has no chunks: who sent it and who passed it on may not agree where it ends
            self._stop(BAD_REQUEST)
        else:
            self.expected = size = route.max_body
        if size > route.max_body:
            self._stop(_too_big(route))
        expects = headers.get(b"expect")
        if expects is not None and size and request.minor:
            if expects.lower() != b"100-continue":
                self._stop(UNEXPECTED)
            if route.refuses:
                self._stop(route)
            self.awaits_continue = True

    def _stop(self, route: Route) -> None:
        self.refuse(route)
        raise _Stopped

    def _say_again(self) -> None:
        """Feed a head once more that asks for another protocol, without that wish: HTTP/1.1 is the only one here.

        With it httptools gives the request no body, and Java's client asks so with every one.
        """
        if not self._upgrades:
            return
        self._upgrades = False
        headers = self._headers
        del headers[b"upgrade"]
        line = b"%b %b HTTP/%b" % (self._http.get_method(), self._target, self._http.get_http_version().encode())
        self._target = b""
        self._headers = {}
        self._room = self._limits.head
        self._http.feed_data(b"\r\n".join([line, *(b"%b: %b" % header for header in headers.items()), b"", b""]))


class _Stopped(Exception):
    """Ends the parsing from within a callback, once the request is refused."""


def _too_big(route: Route) -> Route:
    """What refuses a request whatever its size, or 413 in the route's words."""
    return route if route.refuses else always(error(413, route.too_big), quiet=route.quiet)
