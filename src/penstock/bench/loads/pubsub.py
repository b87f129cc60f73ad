"""Publish and consume at once for some seconds, as many connections for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.bench import crew
from penstock.bench.figures import Figure
from penstock.bench.flows import consumer, publisher
from penstock.bench.under import own_cpu, tidy, watched, with_channels

if TYPE_CHECKING:
    from penstock.bench.settings import Server, Settings

TAKES: Final = ("seconds", "connections", "processes", "ready", "size", "batch")
DEFAULTS: Final[dict[str, int]] = {}


def run(server: Server, settings: Settings) -> list[Figure]:
    figures: list[Figure] = []
    with tidy(server, settings):
        with_channels(server, settings, "bench")
        with watched(server, figures) as messages:
            publishers: list[tuple[crew.Work, tuple[object, ...]]]
            publishers = [(publisher, (server.tcp, settings, count)) for count in settings.spread]
            consumers = [(consumer, (server.tcp, settings, count, ("bench",))) for count in settings.spread]
            done = crew.together(publishers + consumers)
            published, consumed = done[: len(publishers)], done[len(publishers) :]
            messages.append(sum(each.messages for each in published))
    return [
        Figure("published", crew.rate(published), "messages/s"),
        Figure("delivered and finished", crew.rate(consumed), "messages/s"),
        Figure("delivered again", sum(each.again for each in consumed), "messages", less=True),
        *figures,
        own_cpu(done),
    ]
