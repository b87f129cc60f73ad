"""Put a load on an NSQ server, ours or another, and measure what it can do."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from penstock.bench import chart
from penstock.bench.figures import medians, ratio_table, ratios, table
from penstock.bench.settings import Server, Settings, address

if TYPE_CHECKING:
    import argparse

    from penstock.bench.figures import Figure

LOADS: Final = (
    "pub", "sub", "pubsub", "http", "latency", "fanout", "workers", "backlog", "connections", "deferred", "sustained",
)  # fmt: skip
OPTIONS: Final = {
    "seconds": "how long",
    "connections": "for each direction",
    "processes": "that they are spread over, for each direction",
    "size": "bytes of a message",
    "batch": "messages of an MPUB; 1 publishes each alone",
    "ready": "RDY of each connection",
    "messages": "how many wait before it begins",
    "rate": "messages a second",
    "channels": "how many at most",
    "defer": "ms from publish to due",
    "unbuffered": "ask the server to send each message at once",
    "beside": "while another topic is flooded and drained",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    loads = parser.add_subparsers(dest="load", metavar="LOAD", required=True, title="loads")
    for name in LOADS:
        _add_load(loads, name, ["server"])
    compare = loads.add_parser("compare", help="the same load on two servers in turn, and the ratios")
    compared = compare.add_subparsers(dest="load", metavar="LOAD", required=True, title="loads")
    for name in LOADS:
        _add_load(compared, name, ["a", "b"])


def _add_load(loads: Any, name: str, servers: list[str]) -> None:
    module = import_module(f"penstock.bench.loads.{name}")
    parser = loads.add_parser(name, help=(module.__doc__ or "").strip(), description=module.__doc__)
    count = len(servers)
    parser.add_argument("servers", nargs=count, metavar="HOST:PORT", help="TCP address of each server")
    parser.add_argument("--http", nargs=count, default=[""] * count, help="HTTP address: topics are deleted afterwards")
    parser.add_argument("--pid", nargs=count, type=int, default=[None] * count, help="to tell CPU and memory")
    if hasattr(module, "STARTS"):
        parser.add_argument("--start", nargs=count, required=True, metavar="COMMAND", help="runs the server")
    parser.add_argument("--rounds", type=int, default=5 if count > 1 else 1, help="the median counts (%(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the figures of every round")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="a chart")
    for each in fields(Settings):
        if each.name in module.TAKES:
            _add_option(parser, each.name, module.DEFAULTS.get(each.name, each.default))


def _add_option(parser: argparse.ArgumentParser, name: str, default: float) -> None:
    if isinstance(default, bool):
        parser.add_argument(f"--{name}", action="store_true", help=OPTIONS[name])
    else:
        text = f"{OPTIONS[name]} (%(default)s)"
        parser.add_argument(f"--{name}", type=type(default), default=default, help=text)


def run(arguments: argparse.Namespace) -> int:
    module = import_module(f"penstock.bench.loads.{arguments.load}")
    starts = getattr(arguments, "start", [""] * len(arguments.servers))
    servers = [
        Server(address(tcp), address(http) if http else None, pid, start)
        for tcp, http, pid, start in zip(arguments.servers, arguments.http, arguments.pid, starts, strict=True)
    ]
    rounds: list[list[list[Figure]]] = [[] for _ in servers]
    topics = []
    for number in range(arguments.rounds):
        order = list(zip(servers, rounds, strict=True))
        for server, figures in reversed(order) if number % 2 else order:  # each goes first in every other round
            settings = Settings(**{each: getattr(arguments, each) for each in module.TAKES})
            topics.append(settings.topic)
            figures.append(module.run(server, settings))
    _show(rounds)
    if arguments.json:
        found = {"load": arguments.load, "servers": arguments.servers, "settings": asdict(settings), "topics": topics}
        found["rounds"] = [[[each._asdict() for each in figures] for figures in server] for server in rounds]
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")
    if arguments.svg:
        arguments.svg.write_text(chart.bars(arguments.load, arguments.servers, [medians(each) for each in rounds]))
    return 0


def _show(rounds: list[list[list[Figure]]]) -> None:
    lines = ratio_table(ratios(*rounds)) if len(rounds) > 1 else table(medians(rounds[0]))
    for line in lines:
        print(line)
