"""`/channel/peek`: what a channel has and in which state, without giving any of it to anybody.

    next        from the cursor on
    ready       to be delivered again at once
    in_flight   a consumer has it, until it is due
    delayed     to be delivered again when it is due
    deferred    published to be delivered when it is due; in no log before that, so it has neither offset nor id

Each as it is when it is looked at: the channel goes on meanwhile.
"""

from __future__ import annotations

import codecs
from base64 import b64encode
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from penstock.broker.slots import DELAYED, IN_FLIGHT, READY
from penstock.errors import HttpError, NotRetained
from penstock.http import json
from penstock.nsqd.http.arguments import existing_channel, number_if_any
from penstock.nsqd.http.doing import turn_of
from penstock.protocol.batch import moved_before, positions, record

if TYPE_CHECKING:
    from array import array
    from collections.abc import AsyncIterator

    from penstock.broker.channel import Channel
    from penstock.http import Request, Response
    from penstock.log.segment import Block
    from penstock.nsqd.home import Home
    from penstock.nsqd.http.blocks import Blocks
    from penstock.nsqd.service import Service
    from penstock.protocol.batch import Record

USUAL: Final = 10  # of each state,
MOST: Final = 100  # and no more
PREVIEW: Final = 256  # bytes of a body
STATES: Final = {"next": 0, "ready": READY, "in_flight": IN_FLIGHT, "delayed": DELAYED, "deferred": 0}
_MS: Final = 10**6
_utf8: Final = codecs.getincrementaldecoder("utf-8")


class _Place(NamedTuple):
    """A block of the log, and where its records begin."""

    block: Block
    records: array[int]

    def record(self, offset: int) -> Record:
        return record(self.block.data, self.records[offset - self.block.first], offset)


class Peeking:
    def __init__(self, service: Service, blocks: Blocks) -> None:
        self._service = service
        self._node = service.node
        self._blocks = blocks

    async def peek(self, request: Request) -> Response:
        with turn_of(self._service, request):
            home, channel = existing_channel(request, self._node)
        count, state = _count(request), request.arg("state")
        if state is not None and state not in STATES:
            raise HttpError(400, "INVALID_ARG_STATE")
        rows = []
        for each in STATES if state is None else (state,):
            rows += [row async for row in self._rows(each, home, channel, count)]
        return json({"topic": home.topic.name, "channel": channel.name, "messages": rows})

    async def _rows(self, state: str, home: Home, channel: Channel, count: int) -> AsyncIterator[dict[str, Any]]:
        if state == "next":
            async for found in self._next(home, channel, count):
                yield self._row(state, home, found, 0, None)
        elif state == "deferred":
            for due, timestamp, body in home.log.deferred(count):
                if timestamp >= channel.since:
                    yield self._about(state, timestamp, due - self._service.clock.wall) | _preview(body)
        else:
            place = None
            for offset, attempts, until in channel.unfinished.slots.first(STATES[state], count):
                place = await self._place(home, offset, place)
                if place is not None and place.block.first <= offset < place.block.next:
                    left = None if state == "ready" else until - self._service.clock.now
                    yield self._row(state, home, place.record(offset), attempts, left)

    async def _next(self, home: Home, channel: Channel, count: int) -> AsyncIterator[Record]:
        offset, limit, since = channel.cursor, channel.limit, channel.since
        while count and offset < limit and (place := await self._place(home, offset, None)):
            block = place.block
            others = set(moved_before(block.data, block.first, since))
            for each in range(max(offset, block.first), min(block.next, limit)):
                if count and each not in others:
                    count -= 1
                    yield place.record(each)
            offset = block.next

    async def _place(self, home: Home, offset: int, last: _Place | None) -> _Place | None:
        """Where the offset stands, or what is behind it; None where there is nothing."""
        if last is not None and last.block.first <= offset < last.block.next:
            return last
        try:
            block = await self._blocks.read(home, offset, 1, held=True)
        except NotRetained:
            return None
        return _Place(block, positions(block.data, 0, len(block.data))) if block else None

    def _row(self, state: str, home: Home, found: Record, attempts: int, left: int | None) -> dict[str, Any]:
        who = {"offset": found.offset, "id": f"{home.base + found.offset:016x}", "attempts": attempts}
        return self._about(state, found.timestamp, left) | who | _preview(found.body)

    def _about(self, state: str, timestamp: int, left: int | None) -> dict[str, Any]:
        """`left` is how long it takes until it is due."""
        age = max(0, self._service.clock.wall - timestamp) // _MS
        about: dict[str, Any] = {"state": state, "timestamp": timestamp, "age_ms": age}
        return about if left is None else about | {"due_ms": max(0, left) // _MS}


def _count(request: Request) -> int:
    count = number_if_any(request, "n")
    if count is None:
        return USUAL
    if not 1 <= count <= MOST:
        raise HttpError(400, "INVALID_ARG_N")
    return count


def _preview(body: bytes) -> dict[str, Any]:
    """Its beginning: text where it is some."""
    begin = body[:PREVIEW]
    try:
        return {"bytes": len(body), "body": _utf8().decode(begin, final=len(body) <= PREVIEW)}
    except UnicodeDecodeError:
        return {"bytes": len(body), "body_base64": b64encode(begin).decode()}
