"""Consume and finish what waits in a channel, until it is empty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.bench import crew
from penstock.bench.figures import Figure
from penstock.bench.flows import consumer
from penstock.bench.under import filled, own_cpu, tidy, watched, with_channels

if TYPE_CHECKING:
    from penstock.bench.settings import Server, Settings

TAKES: Final = ("messages", "connections", "processes", "ready", "size", "batch")
DEFAULTS: Final[dict[str, int]] = {}
QUIET: Final = 0.5  # seconds without a message after which a consumer believes that it has all


def run(server: Server, settings: Settings) -> list[Figure]:
    figures: list[Figure] = []
    with tidy(server, settings):
        with_channels(server, settings, "bench")
        filled(server, settings)
        with watched(server, figures) as messages:
            work = [(consumer, (server.tcp, settings, count, ("bench",), QUIET)) for count in settings.spread]
            done = crew.together(work)
            messages.append(sum(each.messages for each in done))
    return [
        Figure("delivered and finished", crew.rate(done), "messages/s"),
        Figure("delivered again", sum(each.again for each in done), "messages", less=True),
        *figures,
        own_cpu(done),
    ]
