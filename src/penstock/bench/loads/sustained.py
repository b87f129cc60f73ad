"""Publish for a minute: the rate of the whole, and of its slowest seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.bench import crew
from penstock.bench.figures import Figure
from penstock.bench.flows import publisher
from penstock.bench.under import own_cpu, tidy, watched

if TYPE_CHECKING:
    from penstock.bench.settings import Server, Settings

TAKES: Final = ("seconds", "connections", "processes", "size", "batch")
DEFAULTS: Final = {"seconds": 60.0}


def run(server: Server, settings: Settings) -> list[Figure]:
    figures: list[Figure] = []
    with tidy(server, settings), watched(server, figures) as messages:
        done = crew.together([(publisher, (server.tcp, settings, count)) for count in settings.spread])
        messages.append(sum(each.messages for each in done))
    by_second = sorted(map(sum, zip(*(each.by_second for each in done), strict=False)))
    rate = crew.rate(done)
    return [
        Figure("published", rate, "messages/s"),
        Figure("  as bytes", rate * settings.size / 1e6, "MB/s"),
        Figure("the median second", by_second[len(by_second) // 2] if by_second else 0, "messages"),
        Figure("the slowest second", by_second[0] if by_second else 0, "messages"),
        *figures,
        own_cpu(done),
    ]
