"""Fill a channel, start the server again, and drain it. Needs --start, the command that runs the server."""

from __future__ import annotations

import shlex
import subprocess
from contextlib import contextmanager, suppress
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Final

from penstock.bench import crew
from penstock.bench.connection import Connection
from penstock.bench.figures import Figure
from penstock.bench.flows import consumer
from penstock.bench.loads.sub import QUIET
from penstock.bench.under import filled, own_cpu, tidy, watched, with_channels
from penstock.bench.usage import usage
from penstock.errors import BenchFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.bench.settings import Server, Settings

TAKES: Final = ("messages", "connections", "processes", "ready", "size", "batch")
DEFAULTS: Final[dict[str, int]] = {}
STARTS: Final = True
_PATIENCE: Final = 300.0  # seconds to start and to stop, with a large backlog


def run(server: Server, settings: Settings) -> list[Figure]:
    figures: list[Figure] = []
    with _running(server) as process:
        with_channels(server, settings, "bench")
        filled(server, settings)
        resident = usage(process.pid).resident
        began = monotonic()
    stopped = monotonic() - began
    began = monotonic()
    with _running(server) as process, tidy(server, settings):
        started = monotonic() - began
        with watched(replace(server, pid=process.pid), figures) as messages:
            work = [(consumer, (server.tcp, settings, count, ("bench",), QUIET)) for count in settings.spread]
            done = crew.together(work)
            messages.append(sum(each.messages for each in done))
    return [
        Figure("delivered after the restart", crew.rate(done), "messages/s"),
        Figure("lost", settings.messages - sum(each.messages for each in done), "messages", less=True),
        Figure("delivered again", sum(each.again for each in done), "messages", less=True),
        Figure("memory with the backlog", resident / 1e6, "MB", less=True),
        Figure("to stop", stopped, "s", less=True),
        Figure("to start", started, "s", less=True),
        *figures,
        own_cpu(done),
    ]


@contextmanager
def _running(server: Server) -> Iterator[subprocess.Popen[bytes]]:
    """The server answers; it is stopped as an operator does."""
    if not server.start:
        raise BenchFailed("this needs --start")
    if _answers(server):
        raise BenchFailed(f"something listens on {server.tcp.host}:{server.tcp.port} already")
    process = subprocess.Popen(shlex.split(server.start), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(server, process)
        yield process
    finally:
        process.terminate()
        process.wait(_PATIENCE)


def _wait_for(server: Server, process: subprocess.Popen[bytes]) -> None:
    deadline = monotonic() + _PATIENCE
    while process.poll() is None and monotonic() < deadline:
        if _answers(server):
            return
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
    raise BenchFailed(f"{server.start} does not listen on {server.tcp.host}:{server.tcp.port}")


def _answers(server: Server) -> bool:
    try:
        Connection(server.tcp).close()
    except BenchFailed:
        return False
    return True
