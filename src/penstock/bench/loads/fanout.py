"""Publish to a topic of 1, 2, 4, ... channels, and then deliver to all of these."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock.bench import crew
from penstock.bench.figures import Figure
from penstock.bench.flows import consumer, publisher
from penstock.bench.loads.sub import QUIET
from penstock.bench.under import tidy, watched, with_channels

if TYPE_CHECKING:
    from penstock.bench.settings import Server, Settings

TAKES: Final = ("messages", "channels", "connections", "ready", "size", "batch")
DEFAULTS: Final = {"messages": 200_000, "channels": 16}


def run(server: Server, settings: Settings) -> list[Figure]:
    published, delivered, figures = [], [], list[Figure]()
    with watched(server, figures) as messages:
        for step in range(int(math.log2(settings.channels)) + 1):
            count = 1 << step
            rates = _with(server, replace(settings, topic=f"{settings.topic}_{count}"), count)
            messages.append(settings.messages * count)
            ending = "s" if count > 1 else ""
            published.append(Figure(f"published, {count} channel{ending}", rates[0], "messages/s"))
            delivered.append(Figure(f"delivered, {count} channel{ending}", rates[1], "messages/s"))
    return [*published, *delivered, *figures]


def _with(server: Server, settings: Settings, count: int) -> tuple[float, float]:
    channels = tuple(f"bench{number}" for number in range(count))
    with tidy(server, settings):
        with_channels(server, settings, *channels)
        done = crew.together([(publisher, (server.tcp, settings, settings.connections, settings.messages))])
        consumed = crew.together(
            [(consumer, (server.tcp, settings, max(count, settings.connections), channels, QUIET))]
        )
    return crew.rate(done), crew.rate(consumed)
