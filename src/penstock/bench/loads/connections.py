"""Consumers that connect, subscribe and have nothing to do: how fast they come, and what each costs the server."""

from __future__ import annotations

import resource
from time import monotonic
from typing import TYPE_CHECKING, Final

from penstock.bench.connection import Connection
from penstock.bench.figures import Figure
from penstock.bench.under import tidy
from penstock.bench.usage import usage

if TYPE_CHECKING:
    from penstock.bench.settings import Server, Settings

TAKES: Final = ("connections",)
DEFAULTS: Final = {"connections": 1_000}


def run(server: Server, settings: Settings) -> list[Figure]:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    before = usage(server.pid) if server.pid else None
    with tidy(server, settings):
        clients: list[Connection] = []
        began = monotonic()
        try:
            for _ in range(settings.connections):
                clients.append(Connection(server.tcp))
                clients[-1].subscribe(settings.topic, "bench")
            seconds = monotonic() - began
            after = usage(server.pid) if server.pid else None
        finally:
            for client in clients:
                client.close()
    figures = [Figure("connected and subscribed", settings.connections / seconds, "connections/s")]
    if before and after:
        memory = (after.resident - before.resident) / settings.connections
        cpu = (after.cpu - before.cpu) / settings.connections
        figures.append(Figure("server's memory for each", memory / 1e3, "kB", less=True))
        figures.append(Figure("server's CPU for each", cpu * 1e6, "us", less=True))
    return figures
