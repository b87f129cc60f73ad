"""Publish for some seconds: an MPUB a round trip on each connection, or a PUB with --batch=1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.bench import crew
from penstock.bench.figures import Figure
from penstock.bench.flows import publisher
from penstock.bench.under import own_cpu, tidy, watched

if TYPE_CHECKING:
    from penstock.bench.settings import Server, Settings

TAKES: Final = ("seconds", "connections", "processes", "size", "batch")
DEFAULTS: Final[dict[str, int]] = {}


def run(server: Server, settings: Settings) -> list[Figure]:
    figures: list[Figure] = []
    with tidy(server, settings), watched(server, figures) as messages:
        done = crew.together([(publisher, (server.tcp, settings, count)) for count in settings.spread])
        messages.append(sum(each.messages for each in done))
    return [Figure("published", crew.rate(done), "messages/s"), *figures, own_cpu(done)]
