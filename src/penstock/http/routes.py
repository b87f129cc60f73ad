"""Which handler answers which method and path, and what is answered where there is none. Knows no connection.

As NSQ's router: paths are compared with their escapes undone; a path that is meant but not written so (`/PING`,
`/ping/`, `//ping`) is redirected; OPTIONS is answered everywhere. Unlike there, HEAD works wherever GET does.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from penstock.http.answers import error
from penstock.http.later import Later
from penstock.http.limits import DISCARD
from penstock.http.query import unquoted
from penstock.http.response import Response

if TYPE_CHECKING:
    from penstock.http.request import Request

Handler = Callable[["Request"], Response | Later | Awaitable[Response]]

MAX_BODY: Final = 64 * 1024
_ORIGIN: Final = re.compile(rb"[a-zA-Z][a-zA-Z0-9+.-]*://[^/?#]*")


ANY: Final = "any"  # the right of who is known at all


class Route:
    """A handler, what may be sent to it, and the `right` that a guard has to ask for; without one nobody may use it.

    `quiet` ones are not logged; one that `refuses` wants no body.
    """

    __slots__ = ("handler", "max_body", "quiet", "refuses", "right", "too_big")

    def __init__(
        self,
        handler: Handler,
        *,
        max_body: int = MAX_BODY,
        too_big: str = "BODY_TOO_BIG",
        quiet: bool = False,
        refuses: bool = False,
        right: str = "",
    ) -> None:
        self.handler = handler
        self.max_body = max_body
        self.too_big = too_big
        self.quiet = quiet
        self.refuses = refuses
        self.right = right


def always(answer: Response, *, quiet: bool = False) -> Route:
    """The route of what is not answered by a handler."""
    return Route(lambda _request: answer, max_body=DISCARD, quiet=quiet, refuses=True, right=ANY)


BAD_REQUEST: Final = always(error(400, "INVALID_REQUEST"))
NOT_FOUND: Final = always(error(404, "NOT_FOUND"))


class Routes:
    """The table. A path may end with `/:name`, which stands for any one segment: `request.name`."""

    def __init__(self) -> None:
        self._paths: dict[bytes, dict[bytes, Route]] = {}  # by method, then path
        self._folders: dict[bytes, dict[bytes, Route]] = {}  # by method, then path up to the `:name`

    def add(
        self,
        method: str,
        path: str,
        handler: Handler,
        *,
        max_body: int = MAX_BODY,
        too_big: str = "BODY_TOO_BIG",
        quiet: bool = False,
        right: str = "",
    ) -> None:
        """`max_body` in bytes; a larger one is answered 413 with the words `too_big`, before it is read in."""
        route = Route(handler, max_body=max_body, too_big=too_big, quiet=quiet, right=right)
        folder, _, name = path.rpartition("/")
        table, key = (self._folders, f"{folder}/") if name.startswith(":") else (self._paths, path)
        for each in ("GET", "HEAD") if method == "GET" else (method,):
            table.setdefault(each.encode(), {})[key.encode()] = route

    @property
    def rights(self) -> dict[tuple[str, str], str]:
        """The right of each, by method and path, without HEAD; where a path ends with a name, there is a colon."""
        return {
            (method.decode(), path.decode() + end): route.right
            for table, end in ((self._paths, ""), (self._folders, ":"))
            for method, paths in table.items()
            if method != b"HEAD"
            for path, route in paths.items()
        }

    @property
    def known(self) -> set[tuple[str, str]]:
        """Method and path of each."""
        return set(self.rights)

    def find(self, method: bytes, path: bytes) -> Route:
        """What answers this; never nothing."""
        paths = self._paths.get(method)
        if paths is not None and (route := paths.get(path)) is not None:
            return route
        return self._search(method, path)

    def _search(self, method: bytes, path: bytes) -> Route:
        if method == b"OPTIONS" and path == b"*":
            return always(Response())
        try:
            path = unquoted(_ORIGIN.sub(b"", path, count=1) or b"/")
        except ValueError:
            return BAD_REQUEST
        if not path.startswith(b"/"):
            return NOT_FOUND
        if (route := self._match(method, path)) is not None:
            return route
        if (meant := self._meant(method, path)) is not None:
            return _redirect(method, meant)
        allowed = self._allowed(path)
        if not allowed:
            return NOT_FOUND
        if method == b"OPTIONS":
            return always(Response(headers={"Allow": allowed}))
        return always(error(405, "METHOD_NOT_ALLOWED", {"Allow": allowed}))

    def _match(self, method: bytes, path: bytes) -> Route | None:
        route = self._paths.get(method, {}).get(path)
        if route is None:
            folder, _, name = path.rpartition(b"/")
            if name:
                route = self._folders.get(method, {}).get(folder + b"/")
        return route

    def _meant(self, method: bytes, path: bytes) -> bytes | None:
        """The path that has a handler where this one has none, and differs from it in slashes, dots and case alone."""
        clean = b"/" + posixpath.normpath(path).strip(b"/")
        folder, _, name = clean.rpartition(b"/")
        for known in self._paths.get(method, {}):
            if known.lower().rstrip(b"/") == clean.lower():
                return known
        for known in self._folders.get(method, {}):
            if name and known.lower() == folder.lower() + b"/":
                return known + name
        return None

    def _allowed(self, path: bytes) -> str:
        methods = {method.decode() for method in self._paths.keys() | self._folders if self._match(method, path)}
        return ", ".join(sorted(methods | {"OPTIONS"})) if methods else ""


def _redirect(method: bytes, path: bytes) -> Route:
    status = 301 if method in (b"GET", b"HEAD") else 307  # 307: the same method and body once more

    def redirect(request: Request) -> Response:
        query = f"?{request.query.decode('latin-1')}" if request.query else ""
        return Response(status, headers={"Location": quote(path) + query})

    return Route(redirect, max_body=DISCARD, refuses=True, right=ANY)
