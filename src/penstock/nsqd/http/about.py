"""`/ping` and `/info`: whether the node is well, and who it is."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final

from penstock import NSQ_VERSION, __version__
from penstock.http import Request, Response, json, plain
from penstock.nsqd.stats import OK, health

if TYPE_CHECKING:
    from penstock.nsqd.http.table import Ports
    from penstock.nsqd.service import Service

_S: Final = 10**9


class About:
    def __init__(self, service: Service, ports: Ports) -> None:
        self._service = service
        self._ports = ports

    def ping(self, _request: Request) -> Response:
        said = health(self._service)
        return plain(said, 200 if said == OK else 500)

    def info(self, _request: Request) -> Response:
        options = self._service.options
        return json(
            {
                "version": NSQ_VERSION,
                "broadcast_address": options.broadcast_address,
                "hostname": socket.gethostname(),
                "http_port": self._ports.http,
                "tcp_port": self._ports.tcp,
                "start_time": self._service.started // _S,
                "max_heartbeat_interval": options.max_heartbeat_interval,
                "max_output_buffer_size": options.max_output_buffer_size,
                "max_output_buffer_timeout": options.max_output_buffer_timeout,
                "max_deflate_level": options.max_deflate_level,
                "topology_zone": options.topology_zone,
                "topology_region": options.topology_region,
                "penstock_version": __version__,
                "node": self._service.node.data_path.identity,
            }
        )
