# cython: annotation_typing=False
"""Who waits for the answer to a publish over HTTP. Knows no log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.errors import LogError, OtherBatch
from penstock.http import error, text
from penstock.http.later import Later

if TYPE_CHECKING:
    from penstock.nsqd.service import Service

OK: Final = text("OK")
_FAILED: Final = error(503, "PUB_FAILED")  # whether the messages are there is unknown
_LAST: Final = "X-Penstock-Sequence"  # of the batch that the producer published last


class Published(Later):
    """The answer to one request: the ticket of what it published."""

    __slots__ = ("_service",)

    def __init__(self, service: Service) -> None:
        Later.__init__(self)
        self._service = service

    def done(self, error: LogError | None) -> None:
        if error is None:
            self.answer(OK)
        else:
            self._service.logger.error("HTTP: publishing failed: %s", error)
            self.answer(_FAILED)


class PublishedOnce(Published):
    """The same for a publish under a key."""

    __slots__ = ("_last",)

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self._last: int | None = None

    def repeats(self, last: int) -> None:
        self._last = last

    def done(self, problem: LogError | None) -> None:
        if isinstance(problem, OtherBatch):
            self._service.logger.warn("HTTP: %s", problem)
            self.answer(error(409, "OTHER_DIGEST"))
        elif problem is None and self._last is not None:
            self.answer(text("OK", {_LAST: str(self._last)}))
        else:
            super().done(problem)
