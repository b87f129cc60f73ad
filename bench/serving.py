"""Our nsqd over TCP, beside a bare server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.daemons import OURS, bare, nsqd
from bench.load import BODIES, COUNT, Load
from bench.measure import Row, alternate
from penstock.bench.loads import pub
from penstock.bench.settings import Settings
from penstock.protocol.requests import mpub
from penstock.protocol.requests import pub as single

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.bench.figures import Figure
    from penstock.bench.settings import Server


def rows(load: Load) -> Iterator[Row]:
    with nsqd(load, *OURS) as ours:
        for name, batch in ((f"MPUB of {COUNT}", COUNT), ("PUB, one by one", 1)):
            yield _beside_a_bare_one(load, name, batch, ours)


def _beside_a_bare_one(load: Load, name: str, batch: int, ours: Server) -> Row:
    settings = _settings(load, batch=batch)
    command = mpub(settings.topic, BODIES) if batch > 1 else single(settings.topic, BODIES[0])
    with bare(len(command)) as other:
        return _row(load, name, lambda server: _rate(pub.run(server, settings)), ours, other)


def _row(load: Load, name: str, rate: Callable[[Server], float], ours: Server, other: Server) -> Row:
    """Rates turned into seconds: what `Rounds` counts in."""
    measured = alternate(lambda: 1 / rate(ours), lambda: 1 / rate(other), min(load.rounds, 5))
    mine, limit = measured.medians
    return Row(
        name,
        f"{1 / mine:,.0f} messages/s",
        f"{1 / limit:,.0f}{'' if other.http else ': only answers'}",
        measured,
        figures={"messages a second": 1 / mine},
    )


def _settings(load: Load, *, batch: int = COUNT, connections: int = 2) -> Settings:
    """A topic of its own each time."""
    return Settings(seconds=load.seconds, messages=load.messages, batch=batch, connections=connections)


def _rate(figures: list[Figure]) -> float:
    return figures[0].value
