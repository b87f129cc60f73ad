"""nsqd's HTTP server: the routes, and a log line for each answer while the log takes such lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.http import Request, Server
from penstock.nsqd.http.table import Ports, routes
from penstock.nsqd.logging import INFO
from penstock.options import Duration
from penstock.options.duration import as_text

if TYPE_CHECKING:
    from penstock.nsqd.service import Service

_US: Final = 10**6


def http_server(service: Service, ports: Ports) -> Server:
    logger = service.logger

    def line(request: Request, status: int, seconds: float) -> None:
        took = as_text(Duration(int(seconds * _US) * 1000))
        logger.info("%d %s %s (%s) %s", status, request.method.decode(), request.target, request.remote, took)

    def failed(request: Request | None, problem: BaseException) -> None:
        logger.error("HTTP: %s: %r", request.target if request else "a connection", problem)

    def set_level() -> None:
        """Where no line is written, no time is taken for one."""
        server.log = line if logger.level <= INFO else None

    server = Server(routes(service, ports, set_level).find, on_error=failed)
    set_level()
    return server
