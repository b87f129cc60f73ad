"""Names of topics and channels in a request's query, and what NSQ answers where there is none. Knows no topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import HttpError
from penstock.protocol.names import is_valid

if TYPE_CHECKING:
    from penstock.http import Request


def argument(request: Request, what: str) -> str:
    """Whatever the query says of it, if anything."""
    found = request.arg(what)
    if found is None:
        raise HttpError(400, f"MISSING_ARG_{what.upper()}")
    return found


def valid_name(request: Request, what: str) -> str:
    """What may be the name of a topic or a channel."""
    found = argument(request, what)
    if not is_valid(found):
        raise HttpError(400, f"INVALID_ARG_{what.upper()}")
    return found
