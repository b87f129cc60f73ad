"""The program `nsqd`: what it is put together from, listening, stopping."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import sys
from typing import TYPE_CHECKING, Final

from penstock.daemon.listening import accept, bind, port_of, remove_socket, shown
from penstock.daemon.program import run, stop_signal
from penstock.nsqd.options import NSQD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.daemon.logging import Logger
    from penstock.nsqd.node import Node
    from penstock.nsqd.options import Options
    from penstock.nsqd.service import Service

LOOKUPD_TOKEN: Final = "PENSTOCK_LOOKUPD_TOKEN"
GRACE: Final = 5.0  # seconds for clients to take what is theirs


def main(argv: Sequence[str] | None = None) -> int:
    return run(NSQD, serve, argv)


async def serve(options: Options, logger: Logger) -> None:
    """Serve until a signal asks to stop; handlers come first, then whatever can be seen from outside."""
    stopping = stop_signal()
    from penstock.daemon.http_ports import HttpPorts
    from penstock.daemon.security import Security
    from penstock.nsqd.authority import authority
    from penstock.nsqd.connection import Connection
    from penstock.nsqd.home import Clock
    from penstock.nsqd.http import Ports, routes
    from penstock.nsqd.lookup import Lookups
    from penstock.nsqd.service import Service
    from penstock.options.load import version_line

    logger.info("%s", version_line("nsqd"))
    security = Security(options, logger)
    security.reload_on_hangup()
    service = Service(options, logger, Clock(), security, authority(options, security))
    service.node = _node(options, logger, service)
    gc.collect()
    gc.freeze()
    tcp_socket, http = bind(options.tcp_address), HttpPorts(options, security, logger)
    context = (lambda: security.certificates.client) if options.lookupd_tls else None
    token = os.environ.get(LOOKUPD_TOKEN, "")
    service.lookups = Lookups(service, port_of(tcp_socket), http.http, context, token)
    service.lookups.start()
    tcp = await accept(tcp_socket, lambda: Connection(service))
    logger.info("TCP: listening on %s", shown(tcp_socket))
    await http.listen(routes(service, Ports(port_of(tcp_socket), http.http), http.follow_log).find)
    pushing = _push_to_statsd(service, http.http) if options.statsd_address else None
    await stopping.wait()
    logger.info("NSQ: stopping")
    service.lookups.stop()
    if pushing is not None:
        pushing.cancel()
    tcp.close()
    await http.stop(GRACE)
    await service.stop(GRACE)
    remove_socket(options.tcp_address)
    logger.info("NSQ: bye")


def _push_to_statsd(service: Service, http_port: int) -> asyncio.Task[None]:
    from penstock.nsqd.statsd import Statsd

    return asyncio.create_task(Statsd(service, http_port).run())


def _node(options: Options, logger: Logger, service: Service) -> Node:
    from penstock.log.data_path import JOURNAL, DataPath
    from penstock.log.disk import Damage, Disk
    from penstock.log.journal import Journal
    from penstock.log.topic_log import LogOptions
    from penstock.nsqd.meters import Meters
    from penstock.nsqd.node import Node
    from penstock.nsqd.timed_files import TimedFiles

    def tell(damage: Damage) -> None:
        logger.error("DISK: damage: %s", damage)

    meters = Meters()
    disk = Disk(TimedFiles(meters.flushes), limit=512, on_damage=tell)
    log_options = LogOptions(options.max_bytes_per_file, options.sync_every)
    data_path = DataPath(options.data_path or os.getcwd(), disk=disk, options=log_options)
    journal = Journal(disk, f"{data_path.path}/{JOURNAL}", killed=not data_path.clean)
    node = Node(options, data_path, journal, service.clock, service.run, random.Random(), logger, meters)
    service.node = node
    node.restore()
    return node


if __name__ == "__main__":
    sys.exit(main())
