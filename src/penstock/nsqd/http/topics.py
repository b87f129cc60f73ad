"""`/topic/...` and `/channel/...`: made, deleted, emptied, paused. What is answered stands in the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.reader import Reader
from penstock.errors import HttpError
from penstock.http import json
from penstock.log.entries import NODES
from penstock.log.retention import Limits
from penstock.nsqd.http.arguments import (
    duration_if_any,
    existing_channel,
    existing_channel_or_reader,
    existing_topic,
    number_if_any,
    topic,
    topic_and_channel,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.http import Request, Response
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

    def retain(self, request: Request) -> Response:
        """What is said of it; the rest stays as it was."""
        home = existing_topic(request, self._node, check=True)
        size, time = _limit(request, "bytes", number_if_any), _limit(request, "time", duration_if_any)
        if size is None and time is None:
            raise HttpError(400, "MISSING_ARG_BYTES")
        if home.topic.ephemeral:
            raise HttpError(409, "IS_EPHEMERAL")
        before = home.retention
        self._node.retain(home, Limits(before.bytes if size is None else size, before.time if time is None else time))
        now = home.retention.over(self._node.keeper.limits)
        return json({"bytes": now.bytes, "time": now.time})

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


def _limit(request: Request, what: str, parse: Callable[[Request, str], int | None]) -> int | None:
    """What the topic is to have of its own, NODES, or nothing said."""
    return NODES if request.arg(what) == "default" else parse(request, what)
