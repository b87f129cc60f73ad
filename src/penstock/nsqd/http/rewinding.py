"""`/channel/rewind`, and `/channel/create` with `from=`: a channel that goes on from elsewhere in its topic's log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.http import Response, json
from penstock.nsqd.http.arguments import existing_channel, topic_and_channel
from penstock.nsqd.http.doing import turn_of
from penstock.nsqd.http.places import Places, outside

if TYPE_CHECKING:
    from penstock.http import Request
    from penstock.nsqd.http.blocks import Blocks
    from penstock.nsqd.service import Service


class Rewinding:
    """Handlers. What a time means may have to be read from the device, so topic and channel are looked at after it."""

    def __init__(self, service: Service, blocks: Blocks) -> None:
        self._service = service
        self._node = service.node
        self._places = Places(service, blocks)

    async def rewind(self, request: Request) -> Response:
        """The channel, its consumers with it, goes on from `to`."""
        home, _ = topic_and_channel(request, self._node)
        self._service.begin_turn()  # and reads the clock
        offset = await self._places.find(request, "to", home)
        with turn_of(self._service, request):
            home, channel = existing_channel(request, self._node)
            if (refused := outside(home, offset)) is not None:
                return refused
            self._node.rewind(channel, offset)
            self._service.pump(channel)
        return json({"offset": offset})

    async def create(self, request: Request) -> Response:
        """A channel that begins at `from`; one that is there stays where it is."""
        home, name = topic_and_channel(request, self._node)
        self._service.begin_turn()
        offset = await self._places.find(request, "from", home)
        with turn_of(self._service, request):
            home, name = topic_and_channel(request, self._node)
            if (known := home.topic.channels.get(name)) is not None:
                return json({"offset": known.cursor, "message": "CHANNEL_EXISTS"})
            if (refused := outside(home, offset)) is not None:
                return refused
            self._node.channel(home, name, offset)
        return json({"offset": offset})
