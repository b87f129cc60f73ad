"""Deferred publishes at a fixed rate, each timed from when it was due to its receipt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.bench import crew
from penstock.bench.figures import Figure
from penstock.bench.probe import probe
from penstock.bench.under import own_cpu, tidy, watched, with_channels

if TYPE_CHECKING:
    from penstock.bench.settings import Server, Settings

TAKES: Final = ("seconds", "rate", "size", "ready", "unbuffered", "defer")
DEFAULTS: Final = {"defer": 1_000}


def run(server: Server, settings: Settings) -> list[Figure]:
    figures: list[Figure] = []
    with tidy(server, settings):
        with_channels(server, settings, "bench")
        with watched(server, figures) as messages:
            (found,) = crew.together([(probe, (server.tcp, settings, "bench"))])
            messages.append(found.messages)
    return [
        *found.latencies.figures("due to receipt"),
        Figure("the load's own lateness p99", found.late.at(99) / 1e6, "ms", less=True),
        *figures,
        own_cpu([found]),
    ]
