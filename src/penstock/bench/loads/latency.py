"""From publish to receipt, at a fixed rate that waits for nobody; --beside a flood and a drain of another topic."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from penstock.bench import crew
from penstock.bench.figures import Figure
from penstock.bench.flows import consumer, publisher
from penstock.bench.probe import probe
from penstock.bench.under import own_cpu, tidy, watched, with_channels

if TYPE_CHECKING:
    from penstock.bench.settings import Server, Settings

TAKES: Final = ("seconds", "rate", "size", "ready", "unbuffered", "beside")
DEFAULTS: Final[dict[str, int]] = {}


def run(server: Server, settings: Settings) -> list[Figure]:
    figures: list[Figure] = []
    flood = replace(settings, topic=f"{settings.topic}_flood", size=200, batch=200)
    work: list[tuple[crew.Work, tuple[Any, ...]]] = [(probe, (server.tcp, settings, "bench"))]
    with tidy(server, settings), tidy(server, flood):
        with_channels(server, settings, "bench")
        if settings.beside:
            with_channels(server, flood, "bench")
            work += [(publisher, (server.tcp, flood, 1)), (consumer, (server.tcp, flood, 1, ("bench",)))]
        with watched(server, figures) as messages:
            done = crew.together(work)
            messages.append(done[0].messages + sum(each.messages for each in done[1:2]))
    found = done[0]
    beside = [
        Figure(f"beside, {what}", crew.rate([each]), "messages/s")
        for what, each in zip(("in", "out"), done[1:], strict=False)
    ]
    return [
        *found.latencies.figures("to receipt"),
        Figure("the load's own lateness p99", found.late.at(99) / 1e6, "ms", less=True),
        *beside,
        *figures,
        own_cpu(done),
    ]
