"""Our client beside the better of pynsq and ansq, on the same nsqd: the same work, each as a process of its own."""

from __future__ import annotations

import secrets
import subprocess
import sys
import urllib.request
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from bench.daemons import OURS as OUR_NSQD
from bench.daemons import nsqd
from bench.load import BODIES, Load
from bench.measure import Rounds, Row, micro
from penstock.bench.connection import Connection
from penstock.errors import BenchFailed
from penstock.protocol.requests import mpub

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.bench.settings import Server

_OURS: Final = "penstock"
_RIVALS: Final = ("pynsq", "ansq")
_WORKS: Final = {  # which work, how often ours does it, the most that it may take of the better one's seconds
    "one by one, 100 at a time": ("publish", 5, 1 / 5),
    "MPUB of 100": ("mpub", 1, 1.0),
    "RDY 500, each finished": ("consume", 5, 1 / 5),
}
_PATIENCE: Final = 120.0


class _Run(NamedTuple):
    """Seconds of each message, and of the CPU for it: those depend least on what else the machine does."""

    each: float
    cpu: float


def rows(load: Load) -> Iterator[Row]:
    with nsqd(load, *OUR_NSQD) as server:
        for name, (work, times, most) in _WORKS.items():
            count = max(load.messages // (50 if times > 1 else 10), 500)
            yield _row(load, f"client: {name}", server, work, count, times, most)


def _row(load: Load, name: str, server: Server, work: str, count: int, times: int, most: float) -> Row:
    clients = [_OURS, *_RIVALS]
    runs: dict[str, list[_Run]] = {client: [] for client in clients}
    for number in range(min(load.rounds, 5)):
        for client in clients[number % 3 :] + clients[: number % 3]:
            # what is over too soon says little
            runs[client].append(_run(server, client, work, count * times if client == _OURS else count))
    each = {client: [run.each for run in found] for client, found in runs.items()}
    better = min(_RIVALS, key=lambda rival: median(each[rival]))  # of each round's two it would have two tries
    measured = Rounds(each[_OURS], each[better])
    rates = {client: 1 / median(run.each for run in found) for client, found in runs.items()}
    cpu = {client: median(run.cpu for run in found) for client, found in runs.items()}
    return Row(
        name,
        f"{rates[_OURS]:,.0f} messages/s, CPU {micro(cpu[_OURS])}",
        ", ".join(f"{rival} {rates[rival]:,.0f}, {micro(cpu[rival])}" for rival in _RIVALS),
        measured,
        target=f"<= {most:.2g}",
        met=measured.ratio <= most,
        figures={"times as fast": 1 / measured.ratio, **rates, **{f"{client}: CPU": cpu[client] for client in cpu}},
    )


def _run(server: Server, client: str, work: str, count: int) -> _Run:
    """One process, with a topic of its own."""
    topic = f"bench_{secrets.token_hex(4)}"
    if work == "consume":
        _fill(server, topic, count)
    command = [sys.executable, "-m", "bench.rivals", client, work, str(server.tcp.port), topic, str(count)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_PATIENCE)
    if done.returncode:
        raise BenchFailed(f"{client} failed to {work}: {done.stderr[-500:]}")
    if server.http is not None:
        _post(server, f"/topic/delete?topic={topic}")
    seconds, cpu = map(float, done.stdout.split())
    return _Run(seconds / count, cpu / count)


def _fill(server: Server, topic: str, count: int) -> None:
    """So many messages wait in the channel."""
    _post(server, f"/topic/create?topic={topic}")
    _post(server, f"/channel/create?topic={topic}&channel=bench")
    connection = Connection(server.tcp)
    left = count
    while left:
        bodies = (BODIES * -(-left // len(BODIES)))[: min(left, len(BODIES))]
        connection.ask(mpub(topic, bodies))
        left -= len(bodies)
    connection.close()


def _post(server: Server, target: str) -> None:
    if server.http is None:
        raise BenchFailed("the server has no HTTP")
    url = f"http://{server.http.host}:{server.http.port}{target}"
    urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=10).close()
