"""Our nsqd beside another one, in alternating rounds: PEER_NSQD names it, PEER_TOOLS the folder of NSQ's bench tools.

Each round has a topic of its own, deleted afterwards, on servers that stay up. The peer is measured twice: with a
memory queue of 10 million messages, and with default flags, so that nearly all of it goes to its disk. Ours writes
every message to a file before it answers, whatever the flags.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from time import sleep
from typing import TYPE_CHECKING, Final

from bench.daemons import OURS, bare, nsqd
from bench.load import COUNT, Load
from bench.measure import Row, alternate
from penstock.bench.loads import http, pub, pubsub, sub, workers
from penstock.bench.settings import Settings
from penstock.bench.under import ask
from penstock.bench.usage import usage
from penstock.errors import BenchFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.bench.figures import Figure
    from penstock.bench.settings import Server

_FLAGS: Final = {"memory": ["--mem-queue-size=10000000"], "default flags": []}
_RATE: Final = re.compile(r"([\d.]+)ops/s")


@dataclass(frozen=True)
class Work:
    """What is asked of a server; `run` gives messages a second, and how many there were."""

    name: str
    run: Callable[[Server], tuple[float, float]]
    wanted: dict[str, float]  # times the peer's rate, by what the peer keeps it in


def rows(load: Load) -> Iterator[Row]:
    peer = os.environ.get("PEER_NSQD")
    if not peer:
        return
    for kind, flags in _FLAGS.items():
        with nsqd(load, *OURS, *flags) as ours, nsqd(load, peer, *flags) as other:
            for work in [*_tools(load), *_loads(load)]:
                if kind in work.wanted:
                    yield _row(load, f"{work.name}; peer: {kind}", work, work.wanted[kind], ours, other)
    if tools := os.environ.get("PEER_TOOLS"):
        yield _bound(load, tools)


def _row(load: Load, name: str, work: Work, wanted: float, ours: Server, other: Server) -> Row:
    cpu: dict[Server, list[float]] = {ours: [], other: []}

    def run(server: Server) -> float:
        before = usage(server.pid) if server.pid else None
        rate, messages = work.run(server)
        if before is not None and server.pid:
            cpu[server].append((usage(server.pid).cpu - before.cpu) / max(messages, 1))
        return 1 / max(rate, 1)

    measured = alternate(lambda: run(ours), lambda: run(other), min(load.rounds, 5))
    mine, theirs = measured.medians
    share = median(one / max(two, 1e-9) for one, two in zip(cpu[ours], cpu[other], strict=True))
    target = f"{wanted:.2f} times as fast" if wanted else ""
    return Row(
        name,
        f"{1 / mine:,.0f} messages/s, {median(cpu[ours]) * 1e6:.2f} us CPU",
        f"{1 / theirs:,.0f}, {median(cpu[other]) * 1e6:.2f} us",
        measured,
        target,
        measured.ratio <= 1 / wanted if wanted else None,
        {"times as fast": 1 / measured.ratio, "wanted": wanted, "CPU a message, to the peer's": share},
    )


# --- our own load


def _loads(load: Load) -> Iterator[Work]:
    def settings(batch: int = COUNT, connections: int = 2, channels: int = 1) -> Settings:
        return Settings(
            seconds=load.seconds, messages=load.messages, batch=batch, connections=connections, channels=channels
        )

    def first(figures: list[Figure], seconds: float) -> tuple[float, float]:
        return figures[0].value, figures[0].value * seconds

    both = {"memory": 0.0, "default flags": 0.0}
    yield Work("MPUB by penstock bench", lambda server: first(pub.run(server, settings()), load.seconds), both)
    yield Work("SUB by penstock bench", lambda server: (sub.run(server, settings())[0].value, load.messages), both)
    yield Work("both by penstock bench: out", lambda server: _out(pubsub.run(server, settings()), load.seconds), both)
    one = {"memory": 1.05}
    yield Work("PUB, one by one", lambda server: first(pub.run(server, settings(1)), load.seconds), one)
    yield Work("HTTP /pub", lambda server: first(http.run(server, settings(1, 16)), load.seconds), {"memory": 1.5})
    few = load.messages // 10
    thousand = Settings(messages=few, connections=min(1000, few // 10), ready=1)
    yield Work(
        "1,000 consumers of RDY 1",
        lambda server: (workers.run(server, _again(thousand))[0].value, few),
        {"memory": 1.0},
    )


def _again(settings: Settings) -> Settings:
    """On a topic of its own."""
    return replace(settings, topic=Settings().topic)


def _out(figures: list[Figure], seconds: float) -> tuple[float, float]:
    return figures[1].value, figures[1].value * seconds


# --- NSQ's own


def _tools(load: Load) -> Iterator[Work]:
    folder = os.environ.get("PEER_TOOLS")
    if not folder:
        return
    tools = Tools(Path(folder), load.seconds)
    yield Work("MPUB by bench_writer", tools.publish, {"memory": 1.8, "default flags": 5})
    yield Work("SUB and FIN by bench_reader", tools.consume, {"memory": 1.75, "default flags": 3})
    yield Work("both at once: in", lambda server: tools.both(server, 0), {"memory": 1.75})
    yield Work("both at once: out", lambda server: tools.both(server, 1), {"memory": 1.75})


@dataclass(frozen=True)
class Tools:
    """bench_writer (MPUB of 200, two connections) and bench_reader (RDY 2500, two connections)."""

    folder: Path
    seconds: float

    def publish(self, server: Server) -> tuple[float, float]:
        topic = self._topic(server)
        rate = self._ended(self._writer(server, topic))
        _forget(server, topic)
        return rate, rate * self.seconds

    def publish_to(self, server: Server, topic: str) -> float:
        return self._ended(self._writer(server, topic))

    def consume(self, server: Server) -> tuple[float, float]:
        """What was published for twice as long waits in the channel when this begins, and nothing in the topic."""
        topic = self._topic(server, channel=True)
        self._ended(self._writer(server, topic, 2))
        while _waits_in_topic(server, topic):
            sleep(0.05)
        rate = self._ended(self._reader(server, topic))
        _forget(server, topic)
        return rate, rate * self.seconds

    def both(self, server: Server, which: int) -> tuple[float, float]:
        topic = self._topic(server, channel=True)
        running = [self._writer(server, topic), self._reader(server, topic)]
        rates = [self._ended(each) for each in running]
        _forget(server, topic)
        return rates[which], rates[which] * self.seconds

    def _topic(self, server: Server, *, channel: bool = False) -> str:
        topic = Settings().topic
        ask(server, f"/topic/create?topic={topic}")
        if channel:
            ask(server, f"/channel/create?topic={topic}&channel=ch")
        return topic

    def _writer(self, server: Server, topic: str, times: int = 1) -> subprocess.Popen[str]:
        return self._run("bench_writer", server, topic, times, f"-batch-size={COUNT}")

    def _reader(self, server: Server, topic: str) -> subprocess.Popen[str]:
        return self._run("bench_reader", server, topic, 1, "-channel=ch")

    def _run(self, tool: str, server: Server, topic: str, times: int, *more: str) -> subprocess.Popen[str]:
        address = f"-nsqd-tcp-address={server.tcp.host}:{server.tcp.port}"
        command = [str(self.folder / tool), address, f"-topic={topic}", f"-runfor={self.seconds * times}s", *more]
        return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    def _ended(self, process: subprocess.Popen[str]) -> float:
        said = process.communicate()[1]
        found = _RATE.search(said)
        if found is None:
            raise BenchFailed(f"{process.args!r}: {said.strip()[-200:]}")
        return float(found[1])


def _forget(server: Server, topic: str) -> None:
    with suppress(BenchFailed):  # an nsqd may break the answer off where a client leaves at that moment
        ask(server, f"/topic/delete?topic={topic}")


def _waits_in_topic(server: Server, topic: str) -> int:
    if server.http is None:
        raise BenchFailed("this needs --http")
    url = f"http://{server.http.host}:{server.http.port}/stats?format=json&topic={topic}"
    with urllib.request.urlopen(url, timeout=60) as answer:
        found: int = json.load(answer)["topics"][0]["depth"]
        return found


def _bound(load: Load, folder: str) -> Row:
    """What bench_writer reaches where nothing is done with what it publishes."""
    topic = "bench"
    size = len(f"MPUB {topic}\n") + 8 + COUNT * 204
    tools = Tools(Path(folder), load.seconds)
    with bare(size) as server:
        rate = median(tools.publish_to(server, topic) for _ in range(min(load.rounds, 5)))
    name = "MPUB by bench_writer; a server that only answers"
    return Row(name, f"{rate:,.0f} messages/s", figures={"messages a second": rate})
