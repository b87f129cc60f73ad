"""A server under a load: its CPU time and memory beside what was done to it, and its topic before and after."""

from __future__ import annotations

import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from penstock.bench import crew
from penstock.bench.connection import Connection
from penstock.bench.figures import Figure
from penstock.bench.flows import publisher
from penstock.bench.usage import usage
from penstock.errors import BenchFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.bench.settings import Server, Settings


@contextmanager
def watched(server: Server, figures: list[Figure]) -> Iterator[list[int]]:
    """Adds the server's CPU and memory; the list that it gives wants the number of messages it was for."""
    messages: list[int] = []
    if server.pid is None:
        yield messages
        return
    before = usage(server.pid)
    yield messages
    after = usage(server.pid)
    count = sum(messages) or 1
    figures += [
        Figure("server's CPU", (after.cpu - before.cpu) / count * 1e6, "us a message", less=True),
        Figure("  outside the kernel", (after.user - before.user) / count * 1e6, "us a message", less=True),
        Figure("server's memory", after.resident / 1e6, "MB", less=True),
    ]


def own_cpu(outcomes: list[crew.Outcome]) -> Figure:
    """What the load itself took: near a core, and it is the load that was measured."""
    seconds = max(each.ended for each in outcomes) - min(each.began for each in outcomes)
    return Figure("the load's own CPU", sum(each.cpu for each in outcomes) / max(seconds, 1e-9), "cores", less=True)


def with_channels(server: Server, settings: Settings, *channels: str) -> None:
    """Make them before there are messages: they get all of these."""
    for channel in channels:
        client = Connection(server.tcp)
        client.subscribe(settings.topic, channel)
        client.close()


def filled(server: Server, settings: Settings) -> None:
    """`messages` of them are in the topic."""
    crew.together([(publisher, (server.tcp, settings, min(settings.connections, 4), settings.messages))])


@contextmanager
def tidy(server: Server, settings: Settings) -> Iterator[None]:
    """The topic is gone afterwards, where the server's HTTP address is known and it does so."""
    try:
        yield
    finally:
        if server.http is not None:
            with suppress(BenchFailed):
                ask(server, f"/topic/delete?topic={settings.topic}")


def ask(server: Server, path: str) -> bytes:
    """A POST that is to succeed."""
    if server.http is None:
        raise BenchFailed("this needs --http")
    url = f"http://{server.http.host}:{server.http.port}{path}"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=60) as answer:
            found: bytes = answer.read()
            return found
    except (OSError, urllib.error.URLError) as error:
        raise BenchFailed(f"{url}: {error}") from error
