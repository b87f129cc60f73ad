"""Log lines about HTTP: one for each answer while the log takes such lines, and one for what went wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.daemon import no_memory
from penstock.daemon.logging import INFO
from penstock.options import Duration
from penstock.options.duration import as_text

if TYPE_CHECKING:
    from penstock.daemon.logging import Logger
    from penstock.http import Request, Server

_US: Final = 10**6


class HttpLog:
    def __init__(self, logger: Logger) -> None:
        self._logger = logger

    def follow(self, server: Server) -> None:
        """As the log's level says now: where no line is written, no time is taken for one."""
        server.log = self.answered if self._logger.level <= INFO else None

    def answered(self, request: Request, status: int, seconds: float) -> None:
        took = as_text(Duration(int(seconds * _US) * 1000))
        self._logger.info("%d %s %s (%s) %s", status, request.method.decode(), request.target, request.remote, took)

    def failed(self, request: Request | None, problem: BaseException) -> None:
        if isinstance(problem, MemoryError):
            no_memory.end()
        self._logger.error("HTTP: %s: %r", request.target if request else "a connection", problem)
