"""The program `nsqlookupd`: listening, stopping."""

from __future__ import annotations

import socket
import sys
from functools import partial
from typing import TYPE_CHECKING, Final

from penstock import NSQ_VERSION
from penstock.daemon.listening import accept, bind, port_of, remove_socket, shown
from penstock.daemon.program import run, stop_signal
from penstock.nsqlookupd.options import NSQLOOKUPD

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from penstock.daemon.logging import Logger
    from penstock.nsqlookupd.options import Options

GRACE: Final = 2.0  # seconds for answers to be taken


def main(argv: Sequence[str] | None = None) -> int:
    return run(NSQLOOKUPD, serve, argv)


async def serve(options: Options, logger: Logger) -> None:
    """Serve until a signal asks to stop; handlers come first, then whatever can be seen from outside."""
    stopping = stop_signal()
    from penstock.daemon.http_ports import HttpPorts
    from penstock.daemon.over_tls import Either
    from penstock.daemon.security import Security
    from penstock.daemon.standing import TlsRequired
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
    service.doors = security.doors
    service.about = encoded(
        {
            "broadcast_address": options.broadcast_address,
            "hostname": socket.gethostname(),
            "http_port": http.http,
            **({"https_port": http.https} if http.https > 0 else {}),
            "tcp_port": port_of(tcp_socket),
            "version": NSQ_VERSION,
        }
    )
    make: Callable[[], asyncio.Protocol] = partial(Connection, service)
    if security.certificates.server is not None:
        required = options.tls_required is not TlsRequired.NO
        make = partial(Either, make, security, logger, required=required)
    tcp = await accept(tcp_socket, make)
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
