"""`/topic/...` and `/channel/...`: made, deleted, emptied, paused. What is answered stands in the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.errors import HttpError, LogError
from penstock.http import Request, Response, text
from penstock.nsqd.http.arguments import existing_channel, existing_topic, topic, topic_and_channel

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.nsqd.service import Service

_DONE: Final = text()


class Topics:
    """What operators do to topics and channels."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._node = service.node

    def doing(self, change: Callable[[Request], None]) -> Callable[[Request], Response]:
        """The change as a handler: in a turn of the loop, answered with nothing to say."""

        def handler(request: Request) -> Response:
            self._service.begin_turn()
            try:
                change(request)
            except LogError as error:
                self._service.logger.error("failure in %s - %s", request.target, error)
                raise HttpError(500, "INTERNAL_ERROR") from error
            return _DONE

        return handler

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
        home, channel = existing_channel(request, self._node)
        self._node.delete_channel(home, channel.name)

    def empty_channel(self, request: Request) -> None:
        _, channel = existing_channel(request, self._node)
        self._node.empty_channel(channel)
        self._service.pump(channel)

    def pause_channel(self, request: Request) -> None:
        self._node.pause_channel(existing_channel(request, self._node)[1], True)

    def unpause_channel(self, request: Request) -> None:
        self._node.pause_channel(existing_channel(request, self._node)[1], False)
