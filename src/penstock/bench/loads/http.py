"""Publish over HTTP on connections that stay open: /pub, or /mpub with a --batch. Needs --http."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.bench import crew
from penstock.bench.figures import Figure
from penstock.bench.histogram import Histogram
from penstock.bench.posting import poster
from penstock.bench.under import own_cpu, tidy, watched
from penstock.errors import BenchFailed

if TYPE_CHECKING:
    from penstock.bench.settings import Server, Settings

TAKES: Final = ("seconds", "connections", "processes", "size", "batch")
DEFAULTS: Final = {"connections": 16, "batch": 1}


def run(server: Server, settings: Settings) -> list[Figure]:
    if server.http is None:
        raise BenchFailed("this needs --http")
    figures: list[Figure] = []
    with tidy(server, settings), watched(server, figures) as messages:
        done = crew.together([(poster, (server.http, settings, count)) for count in settings.spread])
        messages.append(sum(each.messages for each in done))
    times = Histogram()
    for each in done:
        times.merge(each.latencies)
    return [
        Figure("published", crew.rate(done), "messages/s"),
        *times.figures("answered"),
        *figures,
        own_cpu(done),
    ]
