"""Who may use which route, by the bearer token that a request shows. Knows requests and tokens; no handler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.auth.grants import Right
from penstock.errors import HttpError
from penstock.http import always, error

if TYPE_CHECKING:
    from penstock.auth.file import TokenFile
    from penstock.http import Request, Route

UNAUTHORIZED: Final = always(error(401, "UNAUTHORIZED", {"WWW-Authenticate": "Bearer"}))
FORBIDDEN: Final = always(error(403, "FORBIDDEN"))
BAD_REQUEST: Final = always(error(400, "INVALID_REQUEST"))
_SCHEME: Final = b"bearer "


class HttpGuard:
    """What it says holds until the tokens are read again."""

    def __init__(self, tokens: TokenFile) -> None:
        self._tokens = tokens

    def __call__(self, request: Request) -> Route | None:
        """The route that refuses the request; None where it may go on.

        A request that names no topic is about all of them.
        """
        shown = request.headers.get(b"authorization", b"")
        if shown[: len(_SCHEME)].lower() != _SCHEME:
            return UNAUTHORIZED
        holder = self._tokens.tokens.holder(shown[len(_SCHEME) :].strip())
        if holder is None:
            return UNAUTHORIZED
        if not request.route.right:
            return FORBIDDEN
        try:
            topic = request.arg("topic") or None
            channel = request.arg("channel") or request.arg("reader") or None
        except HttpError:
            return BAD_REQUEST
        return None if holder.may(Right(request.route.right), topic, channel) else FORBIDDEN
