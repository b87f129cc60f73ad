"""The program `nsqlookupd`: listening, stopping."""

from __future__ import annotations

import socket
import sys
from typing import TYPE_CHECKING, Final

from penstock import NSQ_VERSION
from penstock.daemon.listening import accept, bind, port_of, remove_socket, shown
from penstock.daemon.program import run, stop_signal
from penstock.nsqlookupd.options import NSQLOOKUPD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.daemon.logging import Logger
    from penstock.nsqlookupd.options import Options

GRACE: Final = 2.0  # seconds for answers to be taken


def main(argv: Sequence[str] | None = None) -> int:
    return run(NSQLOOKUPD, serve, argv)


async def serve(options: Options, logger: Logger) -> None:
    """Serve until a signal asks to stop; handlers come first, then whatever can be seen from outside."""
    stopping = stop_signal()
    from penstock.daemon.http_ports import HttpPorts
    from penstock.daemon.security import Security
    from penstock.http.answers import encoded
    from penstock.nsqlookupd.connection import Connection
    from penstock.nsqlookupd.http import routes
    from penstock.nsqlookupd.service import Service, steady_clock
    from penstock.options.load import version_line

    logger.info("%s", version_line("nsqlookupd"))
    security = Security(options, logger)
    security.reload_on_hangup()
    service = Service(options, logger, steady_clock())
    tcp_socket, http = bind(options.tcp_address), HttpPorts(options, security, logger)
    service.about = encoded(
        {
            "broadcast_address": options.broadcast_address,
            "hostname": socket.gethostname(),
            "http_port": http.http,
            "tcp_port": port_of(tcp_socket),
            "version": NSQ_VERSION,
        }
    )
    tcp = await accept(tcp_socket, lambda: Connection(service))
    logger.info("TCP: listening on %s", shown(tcp_socket))
    await http.listen(routes(service).find)
    await stopping.wait()
    logger.info("NSQ: stopping")
    tcp.close()
    service.waiting.stop()
    await http.stop(GRACE)
    service.stop()
    remove_socket(options.tcp_address)
    logger.info("NSQ: bye")


if __name__ == "__main__":
    sys.exit(main())
