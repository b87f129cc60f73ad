# cython: annotation_typing=False
"""One request, whole. Knows its bytes, its route and who sent it, and no connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import HttpError
from penstock.http.query import arguments, unquoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.http.routes import Route


class Request:
    """`method`, `path` and `query` are bytes as they came; `args` and `name` are the words in them.

    `headers` have their names in lower case, and what came twice joined by a comma. Like `args` they may be those of
    other requests too, and are only read; how long the body is stands in the body alone.
    """

    __slots__ = ("_args", "body", "headers", "keep_alive", "method", "minor", "path", "peer", "query", "route")

    def __init__(
        self,
        method: bytes,
        path: bytes,
        query: bytes,
        headers: Mapping[bytes, bytes],
        route: Route,
        peer: object,
        body: bytes = b"",
        args: Mapping[str, list[str]] | None = None,
    ) -> None:
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.route = route
        self.peer = peer
        self.body = body
        self.keep_alive = True
        self.minor = 1  # of the version: 0 is HTTP/1.0
        self._args = args

    def again(self, body: bytes) -> Request:
        """The same request with another body."""
        another = Request.__new__(Request)  # busy clients make many: all that is known of it is set here
        another.method, another.path, another.query = self.method, self.path, self.query
        another.headers, another.route, another.peer = self.headers, self.route, self.peer
        another._args, another.keep_alive, another.minor = self._args, True, 1
        another.body = body
        return another

    @property
    def args(self) -> Mapping[str, list[str]]:
        """The query's names and values; a query that is none is answered INVALID_REQUEST, as in NSQ."""
        return self.read_args()

    def read_args(self) -> Mapping[str, list[str]]:
        """`args`, for compiled code, to which a property is a detour."""
        if self._args is None:
            try:
                self._args = arguments(self.query)
            except ValueError:
                raise HttpError(400, "INVALID_REQUEST") from None
        return self._args

    def arg(self, name: str) -> str | None:
        """The first value of that name."""
        values = self.args.get(name)
        return values[0] if values else None

    @property
    def name(self) -> str:
        """What stands in the place of the `:name` that the route's path ends with."""
        return unquoted(self.path).rpartition(b"/")[2].decode("utf-8", "surrogateescape")

    @property
    def target(self) -> str:
        """Path and query as one text, for a log line."""
        return (self.path + b"?" + self.query if self.query else self.path).decode("latin-1")

    @property
    def remote(self) -> str:
        """The client's address, as Go writes it."""
        if not isinstance(self.peer, tuple):
            return "@"  # the nameless end of a unix socket
        host, port = self.peer[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
