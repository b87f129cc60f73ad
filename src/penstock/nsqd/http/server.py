"""nsqd's HTTP server: the routes and the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.daemon.http_log import HttpLog
from penstock.http import Server
from penstock.nsqd.http.table import Ports, routes

if TYPE_CHECKING:
    from penstock.nsqd.service import Service


def http_server(service: Service, ports: Ports) -> Server:
    log = HttpLog(service.logger)
    server = Server(routes(service, ports, lambda: log.follow(server)).find, on_error=log.failed)
    log.follow(server)
    return server
