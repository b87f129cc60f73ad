"""`/stats` as JSON and as text, a slice at a time, however many topics and clients there are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from penstock import NSQ_VERSION
from penstock.http import Request, Response, text
from penstock.http import json as json_answer
from penstock.nsqd.http import stats_text
from penstock.nsqd.http.garbage import Garbage
from penstock.nsqd.http.pace import Pace
from penstock.nsqd.stats import channel_row, channels_of, client_row, health, homes_of, producers_of, topic_row

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
        service, pace = self._service, Pace()
        parts: list[str] = []
        homes = homes_of(service, wanted.topic, wanted.channel)
        head: dict[str, Any] = {
            "version": NSQ_VERSION,
            "health": health(service),
            "start_time": service.started // _S,
        }
        if wanted.memory:
            head["memory"] = self._garbage.memory()
        parts.append(_open(head, "topics"))
        if homes is None:
            parts.append("null")
        else:
            parts.append("[")
            for number, home in enumerate(homes):
                parts.append("," if number else "")
                await self._topic(parts, home, wanted, pace)
            parts.append("]")
        parts.append(',"producers":')
        producers = producers_of(service) if wanted.clients and homes is not None else []
        await self._clients(parts, producers or None, wanted.topic, pace)
        parts.append("}")
        return json_answer("".join(parts).encode())

    async def _topic(self, parts: list[str], home: Home, wanted: Wanted, pace: Pace) -> None:
        parts += (_open(topic_row(home), "channels"), "[")
        for number, channel in enumerate(channels_of(home, wanted.channel)):
            parts += ("," if number else "", _open(channel_row(home, channel), "clients"))
            await self._clients(parts, self._consumers(channel) if wanted.clients else None, wanted.topic, pace)
            parts.append("}")
            if pace.tired:
                await pace.rest()
        parts.append("]}")
        if pace.tired:
            await pace.rest()

    async def _clients(self, parts: list[str], sessions: Iterable[Session] | None, topic: str, pace: Pace) -> None:
        if sessions is None:
            parts.append("null")
            return
        rows: list[str] = []
        for session in sessions:
            rows.append(_encode(client_row(session, topic)))
            if pace.tired:
                await pace.rest()
        parts += ("[", ",".join(rows), "]")

    def _consumers(self, channel: Channel) -> list[Session]:
        return [consumer.sink for consumer in channel.consumers]  # type: ignore[misc]  # a session is their sink

    # --- text

    async def _text(self, wanted: Wanted) -> Response:
        service, pace = self._service, Pace()
        now = service.clock.wall
        homes = homes_of(service, wanted.topic, wanted.channel)
        memory = self._garbage.memory() if wanted.memory else None
        parts = [stats_text.head(health(service), service.started, now, memory, any_topics=bool(homes))]
        for home in homes or ():
            parts.append(stats_text.topic(topic_row(home)))
            for channel in channels_of(home, wanted.channel):
                parts.append(stats_text.channel(channel_row(home, channel)))
                for session in self._consumers(channel) if wanted.clients else ():
                    parts.append(stats_text.client("        ", client_row(session, wanted.topic), now))
                    if pace.tired:
                        await pace.rest()
                if pace.tired:
                    await pace.rest()
            if pace.tired:
                await pace.rest()
        producers = producers_of(service) if wanted.clients and homes is not None else []
        parts.append("\nProducers:\n" if producers else "\nProducers: None\n")
        for session in producers:
            parts.append(stats_text.client("   ", client_row(session, wanted.topic), now))
            if pace.tired:
                await pace.rest()
        return text("".join(parts).encode("utf-8", "replace"))


def _open(row: dict[str, Any], last: str) -> str:
    """The object up to where the value of its `last` key goes."""
    return f'{_encode(row)[:-1]},"{last}":'
