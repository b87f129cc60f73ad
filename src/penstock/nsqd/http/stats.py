"""`/stats` as JSON and as text, a slice at a time, however many topics and clients there are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from penstock import NSQ_VERSION
from penstock.http import Request, Response, text
from penstock.http import json as json_answer
from penstock.nsqd.http import stats_text
from penstock.nsqd.http.garbage import Garbage
from penstock.nsqd.http.slices import Slices
from penstock.nsqd.stats import (
    channel_row,
    channels_of,
    client_row,
    health,
    homes_of,
    producers_of,
    reader_row,
    readers_of,
    topic_row,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.broker.channel import Channel
    from penstock.nsqd.home import Home
    from penstock.nsqd.service import Service
    from penstock.nsqd.session import Session

_S: Final = 10**9
_WORDS: Final = {"true": True, "1": True, "false": False, "0": False}
_encode: Final = json.JSONEncoder(separators=(",", ":")).encode


class Wanted(NamedTuple):
    """What the query asks for; what it says of clients and memory and is no word means yes, as in nsqd."""

    topic: str
    channel: str
    clients: bool
    memory: bool

    @classmethod
    def of(cls, request: Request) -> Wanted:
        return cls(
            request.arg("topic") or "",
            request.arg("channel") or "",
            _WORDS.get(request.arg("include_clients") or "", True),
            _WORDS.get(request.arg("include_mem") or "", True),
        )


class Stats:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._garbage = Garbage()

    async def stats(self, request: Request) -> Response:
        wanted = Wanted.of(request)
        if request.arg("format") == "json":
            return await self._json(wanted)
        return await self._text(wanted)

    # --- JSON

    async def _json(self, wanted: Wanted) -> Response:
        service, out = self._service, Slices(self._service.node.meters.turns)
        homes = homes_of(service, wanted.topic, wanted.channel)
        head: dict[str, Any] = {
            "version": NSQ_VERSION,
            "health": health(service),
            "start_time": service.started // _S,
        }
        if wanted.memory:
            head["memory"] = self._garbage.memory()
        out.write(_open(head, "topics"))
        if homes is None:
            out.write("null")
        else:
            out.write("[")
            for number, home in enumerate(homes):
                out.write("," if number else "")
                await self._topic(out, home, wanted)
            out.write("]")
        out.write(',"producers":')
        producers = producers_of(service) if wanted.clients and homes is not None else []
        await self._clients(out, producers or None, wanted.topic)
        out.write("}")
        return json_answer(out.whole())

    async def _topic(self, out: Slices, home: Home, wanted: Wanted) -> None:
        out.write(_open(topic_row(home, self._service), "channels"))
        out.write("[")
        channels = channels_of(home, wanted.channel)
        for number, channel in enumerate(channels):
            out.write("," if number else "")
            out.write(_open(channel_row(home, channel, self._service), "clients"))
            await self._clients(out, self._consumers(channel) if wanted.clients else None, wanted.topic)
            out.write("}")
            await out.pause()
        for number, reader in enumerate(readers_of(home, wanted.channel), start=len(channels)):
            out.write("," if number else "")
            out.write(_encode({**reader_row(home, reader), "clients": [] if wanted.clients else None}))
        out.write("]}")
        await out.pause()

    async def _clients(self, out: Slices, sessions: Iterable[Session] | None, topic: str) -> None:
        if sessions is None:
            out.write("null")
            return
        out.write("[")
        for number, session in enumerate(sessions):
            out.write("," if number else "")
            out.write(_encode(client_row(session, topic)))
            await out.pause()
        out.write("]")

    def _consumers(self, channel: Channel) -> list[Session]:
        return [consumer.sink for consumer in channel.consumers]  # type: ignore[misc]  # a session is their sink

    # --- text

    async def _text(self, wanted: Wanted) -> Response:
        service, out = self._service, Slices(self._service.node.meters.turns)
        now = service.clock.wall
        homes = homes_of(service, wanted.topic, wanted.channel)
        memory = self._garbage.memory() if wanted.memory else None
        out.write(stats_text.head(health(service), service.started, now, memory, any_topics=bool(homes)))
        for home in homes or ():
            out.write(stats_text.topic(topic_row(home, service)))
            for channel in channels_of(home, wanted.channel):
                out.write(stats_text.channel(channel_row(home, channel, service)))
                for session in self._consumers(channel) if wanted.clients else ():
                    out.write(stats_text.client("        ", client_row(session, wanted.topic), now))
                    await out.pause()
                await out.pause()
            for reader in readers_of(home, wanted.channel):
                out.write(stats_text.channel(reader_row(home, reader)))
            await out.pause()
        producers = producers_of(service) if wanted.clients and homes is not None else []
        out.write("\nProducers:\n" if producers else "\nProducers: None\n")
        for session in producers:
            out.write(stats_text.client("   ", client_row(session, wanted.topic), now))
            await out.pause()
        return text(out.whole())


def _open(row: dict[str, Any], last: str) -> str:
    """The object up to where the value of its `last` key goes."""
    return f'{_encode(row)[:-1]},"{last}":'
