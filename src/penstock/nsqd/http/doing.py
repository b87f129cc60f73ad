"""What users ask to be changed, as handlers: in a turn of the loop, answered when it stands in the journal."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from penstock.errors import HttpError, LogError, NameTaken
from penstock.http import text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.http import Request, Response
    from penstock.nsqd.service import Service

_DONE: Final = text()


@contextmanager
def turn_of(service: Service, request: Request) -> Iterator[None]:
    """A change is made in a turn of the loop; what the core raises is said as HTTP says it."""
    service.begin_turn()
    try:
        yield
    except NameTaken as error:
        raise HttpError(409, "IS_A_READER") from error
    except LogError as error:
        service.logger.error("failure in %s - %s", request.target, error)
        raise HttpError(500, "INTERNAL_ERROR") from error


def doing(service: Service, change: Callable[[Request], Response | None]) -> Callable[[Request], Response]:
    """The change as a handler; where it has nothing to say, so has the answer."""

    def handler(request: Request) -> Response:
        with turn_of(service, request):
            return change(request) or _DONE

    return handler
