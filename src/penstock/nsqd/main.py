"""The program `nsqd`: options, signals, listening, stopping."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import signal
import socket
import sys
from typing import TYPE_CHECKING, Final

from penstock.errors import BadFlag, BadOption, PenstockError
from penstock.nsqd.logging import Logger
from penstock.nsqd.options import NSQD
from penstock.options import endpoint, load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.nsqd.options import Options

BACKLOG: Final = 4096
GRACE: Final = 5.0  # seconds for clients to take what is theirs
_FILES: Final = 1 << 20


def main(argv: Sequence[str] | None = None) -> int:
    try:
        options, notes = load(NSQD, sys.argv[1:] if argv is None else argv)
    except BadFlag as error:
        print(f"nsqd: {error}", file=sys.stderr)
        return error.exit_code
    except BadOption as error:
        Logger("[nsqd] ").fatal("%s", error)
        return error.exit_code
    logger = Logger(options.log_prefix, options.log_level)
    for note in notes:
        logger.warn("%s", note)
    try:
        _run(options, logger)
    except PenstockError as error:
        logger.fatal("%s", error)
        return 1
    except OSError as error:
        logger.fatal("%s", error)
        return 1
    return 0


def _run(options: Options, logger: Logger) -> None:
    import uvloop

    _raise_file_limit()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(options, logger))


def _raise_file_limit() -> None:
    """As many connections and segments as the machine allows this user."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else hard
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def serve(options: Options, logger: Logger) -> None:
    """Serve until a signal asks to stop; handlers come first, then whatever can be seen from outside."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    from penstock.nsqd.connection import Connection
    from penstock.nsqd.home import Clock
    from penstock.nsqd.http import Ports, http_server
    from penstock.nsqd.service import Service
    from penstock.options.load import version_line

    logger.info("%s", version_line("nsqd"))
    service = Service(options, logger, Clock())
    service.node = _node(options, logger, service)
    gc.collect()
    gc.freeze()
    tcp_socket = bind(options.tcp_address)
    create = loop.create_unix_server if tcp_socket.family == socket.AF_UNIX else loop.create_server
    tcp = await create(lambda: Connection(service), sock=tcp_socket, backlog=BACKLOG)
    logger.info("TCP: listening on %s", _address(tcp_socket))
    http_socket = bind(options.http_address) if options.http_address else None
    http = http_server(service, Ports(_port(tcp_socket), _port(http_socket)))
    if http_socket is not None:
        await http.listen(http_socket)
        logger.info("HTTP: listening on %s", _address(http_socket))
    await stopping.wait()
    logger.info("NSQ: stopping")
    tcp.close()
    await http.stop(GRACE)
    await service.stop(GRACE)
    for address in (options.tcp_address, options.http_address):
        if address and (path := endpoint(address).path) and os.path.exists(path):
            os.unlink(path)
    logger.info("NSQ: bye")


def _node(options: Options, logger: Logger, service: Service) -> Node:
    from penstock.log.data_path import JOURNAL, DataPath
    from penstock.log.disk import Damage, Disk
    from penstock.log.journal import Journal
    from penstock.log.topic_log import LogOptions
    from penstock.nsqd.node import Node

    def tell(damage: Damage) -> None:
        logger.error("DISK: damage: %s", damage)

    disk = Disk(limit=512, on_damage=tell)
    log_options = LogOptions(options.max_bytes_per_file, options.sync_every)
    data_path = DataPath(options.data_path or os.getcwd(), disk=disk, options=log_options)
    journal = Journal(disk, f"{data_path.path}/{JOURNAL}")
    node = Node(options, data_path, journal, service.clock, service.run, random.Random(), logger)
    service.node = node
    node.restore()
    return node


def bind(address: str) -> socket.socket:
    """A socket bound to the address: every one of the machine's where no host is named."""
    where = endpoint(address)
    if where.path:
        if os.path.exists(where.path):
            os.unlink(where.path)
        bound = socket.socket(socket.AF_UNIX)
        bound.bind(where.path)
        return bound
    if not where.host and socket.has_dualstack_ipv6():
        return socket.create_server(("", where.port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG)
    family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
    return socket.create_server((where.host, where.port), family=family, backlog=BACKLOG)


def _address(bound: socket.socket) -> str:
    name = bound.getsockname()
    if not isinstance(name, tuple):
        return str(name)
    return f"[{name[0]}]:{name[1]}" if ":" in name[0] else f"{name[0]}:{name[1]}"


def _port(bound: socket.socket | None) -> int:
    """-1 for a unix socket, and for none."""
    name = bound.getsockname() if bound is not None else None
    return name[1] if isinstance(name, tuple) else -1


if TYPE_CHECKING:
    from penstock.nsqd.node import Node
    from penstock.nsqd.service import Service

if __name__ == "__main__":
    sys.exit(main())
