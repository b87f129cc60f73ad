"""Run nsqlookupd and nsqd together, for trying and developing: one folder of data, one Ctrl-C.

Flags of nsqd may stand behind `--`: penstock up --nodes 3 -- --retention-time=1h
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.cli.places import state_folder
from penstock.cli.up.daemon import HOST, Daemon, Ports

if TYPE_CHECKING:
    import argparse

LOOKUPD: Final = Ports(4160, 4161)
FIRST: Final = 4150  # the first nsqd's, as everywhere; the others have those behind it
MOST: Final = 100  # nodes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", type=int, default=1, metavar="N", help="how many nsqd (%(default)s)")
    parser.add_argument("--data", type=Path, metavar="DIR", help=f"holds all data and logs ({state_folder('up')})")
    parser.add_argument("--free-ports", action="store_true", help="any ports that are free, instead of NSQ's")
    parser.add_argument("--json", action="store_true", help="say where they listen as one line of JSON")
    parser.add_argument("flags", nargs="*", metavar="-- FLAG", help="for each nsqd")


def run(arguments: argparse.Namespace) -> int:
    if not 0 < arguments.nodes <= MOST:
        print(f"penstock up: --nodes: {arguments.nodes} is not between 1 and {MOST}", file=sys.stderr)
        return 2
    data = arguments.data or state_folder("up")
    data.mkdir(parents=True, exist_ok=True)
    asyncio.run(_serve(data, arguments))
    return 0


async def _serve(data: Path, arguments: argparse.Namespace) -> None:
    from penstock.daemon.program import stop_signal

    stopping = stop_signal()
    up: list[Daemon] = []
    try:
        await _until(stopping, _start(up, data, arguments))
        if not stopping.is_set():
            _show(data, up, as_json=arguments.json)
            await _until(stopping, _any_fails(up))
    finally:
        await asyncio.gather(*(daemon.stop() for daemon in up[1:]))
        await asyncio.gather(*(daemon.stop() for daemon in up[:1]))
    if not arguments.json:
        print("all stopped; the data stays", flush=True)


async def _until(stopping: asyncio.Event, doing: object) -> None:
    """Do it, or leave it when a signal asks to stop."""
    tasks = [asyncio.ensure_future(doing), asyncio.ensure_future(stopping.wait())]  # type: ignore[call-overload]
    done, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    for task in done:
        task.result()


async def _start(up: list[Daemon], data: Path, arguments: argparse.Namespace) -> None:
    """nsqlookupd first, so that each nsqd can be told where it is."""
    any_port = Ports(0, 0)
    lookupd = _daemon("nsqlookupd", [], any_port if arguments.free_ports else LOOKUPD, data)
    up.append(lookupd)
    await lookupd.start()
    for number in range(arguments.nodes):
        name = f"nsqd-{number + 1}"
        folder = data / name
        folder.mkdir(exist_ok=True)
        flags = [f"--data-path={folder}", f"--lookupd-tcp-address={HOST}:{lookupd.ports.tcp}"]
        flags += [f"--broadcast-address={HOST}", *arguments.flags]
        ports = any_port if arguments.free_ports else _ports(number)
        up.append(_daemon(name, flags, ports, data))
    for failed in await asyncio.gather(*(daemon.start() for daemon in up[1:]), return_exceptions=True):
        if failed is not None:
            raise failed


def _daemon(name: str, flags: list[str], ports: Ports, data: Path) -> Daemon:
    module = f"penstock.{name.partition('-')[0]}.main"
    return Daemon(name, module, flags, ports, data / f"{name}.log", _tell)


def _ports(number: int) -> Ports:
    """The number-th pair from NSQ's own on, without nsqlookupd's."""
    tcp = FIRST + 2 * number
    return Ports(tcp, tcp + 1) if tcp < LOOKUPD.tcp else Ports(tcp + 2, tcp + 3)


async def _any_fails(up: list[Daemon]) -> None:
    await asyncio.gather(*(daemon.failed() for daemon in up))


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _show(data: Path, up: list[Daemon], *, as_json: bool) -> None:
    if as_json:
        rows = [
            {"name": each.name, "tcp": f"{HOST}:{each.ports.tcp}", "http": f"{HOST}:{each.ports.http}", "pid": each.pid}
            for each in up
        ]
        print(json.dumps({"data": str(data), "daemons": rows}), flush=True)
        return
    print(f"up, with data and logs in {data}; Ctrl-C stops all")
    for each in up:
        print(f"  {each.name:12}tcp {HOST}:{each.ports.tcp:<8}http {HOST}:{each.ports.http}")
    print(f"try: curl -d hello 'http://{HOST}:{up[1].ports.http}/pub?topic=greetings'", flush=True)
