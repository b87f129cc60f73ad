"""Our client beside the better of pynsq and ansq, on the same nsqd: the same work, each as a process of its own."""

from __future__ import annotations

import secrets
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING, Final

from bench.daemons import OURS, nsqd
from bench.load import BODIES, Load
from bench.measure import Row, alternate
from penstock.bench.connection import Connection
from penstock.errors import BenchFailed
from penstock.protocol.requests import mpub

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.bench.settings import Server

_RIVALS: Final = ("pynsq", "ansq")
_WORKS: Final = {  # which work, how often ours does it, the most that it may take of the better one's seconds
    "one by one, 100 at a time": ("publish", 5, 1 / 5),
    "MPUB of 100": ("mpub", 1, 1.0),
    "RDY 500, each finished": ("consume", 5, 1 / 5),
}
_PATIENCE: Final = 120.0


def rows(load: Load) -> Iterator[Row]:
    with nsqd(load, *OURS) as server:
        for name, (work, times, most) in _WORKS.items():
            count = max(load.messages // (50 if times > 1 else 10), 500)
            yield _row(load, f"client: {name}", server, work, count, times, most)


def _row(load: Load, name: str, server: Server, work: str, count: int, times: int, most: float) -> Row:
    by_rival: dict[str, list[float]] = {rival: [] for rival in _RIVALS}

    def rivals() -> float:
        for rival, found in by_rival.items():
            found.append(_seconds(server, rival, work, count))
        return min(found[-1] for found in by_rival.values())

    more = count * times  # what is over too soon says little
    measured = alternate(lambda: _seconds(server, "penstock", work, more) * count / more, rivals, min(load.rounds, 5))
    mine, _ = measured.medians
    rates = {rival: count / min(found) for rival, found in by_rival.items()}
    return Row(
        name,
        f"{count / mine:,.0f} messages/s",
        ", ".join(f"{rival} {rate:,.0f}" for rival, rate in rates.items()),
        measured,
        target=f"<= {most:.2g}",
        met=measured.ratio <= most,
        figures={"messages a second": count / mine, "times as fast": 1 / measured.ratio, **rates},
    )


def _seconds(server: Server, client: str, work: str, count: int) -> float:
    """Of one process, with a topic of its own."""
    topic = f"bench_{secrets.token_hex(4)}"
    if work == "consume":
        _fill(server, topic, count)
    command = [sys.executable, "-m", "bench.rivals", client, work, str(server.tcp.port), topic, str(count)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_PATIENCE)
    if done.returncode:
        raise BenchFailed(f"{client} failed to {work}: {done.stderr[-500:]}")
    if server.http is not None:
        _post(server, f"/topic/delete?topic={topic}")
    return float(done.stdout)


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
