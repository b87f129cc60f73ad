"""`/topic/...` and `/channel/...`: made, deleted, emptied, paused. What is answered stands in the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.reader import Reader
from penstock.nsqd.http.arguments import (
    existing_channel,
    existing_channel_or_reader,
    existing_topic,
    topic,
    topic_and_channel,
)

if TYPE_CHECKING:
    from penstock.http import Request
    from penstock.nsqd.service import Service


class Topics:
    """What operators do to topics and channels."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._node = service.node

    # --- topics

    def create_topic(self, request: Request) -> None:
        topic(request, self._node)

    def delete_topic(self, request: Request) -> None:
        self._node.delete_topic(existing_topic(request, self._node))

    def empty_topic(self, request: Request) -> None:
        self._node.empty_topic(existing_topic(request, self._node, check=True))

    def pause_topic(self, request: Request) -> None:
        self._node.pause_topic(existing_topic(request, self._node), True)

    def unpause_topic(self, request: Request) -> None:
        self._node.pause_topic(existing_topic(request, self._node), False)

    # --- channels

    def create_channel(self, request: Request) -> None:
        self._node.channel(*topic_and_channel(request, self._node))

    def delete_channel(self, request: Request) -> None:
        home, found = existing_channel_or_reader(request, self._node)
        if isinstance(found, Reader):
            self._node.readers.delete(home, found)
        else:
            self._node.delete_channel(home, found.name)

    def empty_channel(self, request: Request) -> None:
        _, channel = existing_channel(request, self._node)
        self._node.empty_channel(channel)
        self._service.pump(channel)

    def pause_channel(self, request: Request) -> None:
        self._pause_channel(request, True)

    def unpause_channel(self, request: Request) -> None:
        self._pause_channel(request, False)

    def _pause_channel(self, request: Request, paused: bool) -> None:
        home, found = existing_channel_or_reader(request, self._node)
        if isinstance(found, Reader):
            self._node.readers.pause(home, found, paused)
        else:
            self._node.pause_channel(found, paused)
