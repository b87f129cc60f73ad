"""`/topic/...` and `/channel/...`: what users have nsqlookupd know, forget or hide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.daemon.arguments import argument, valid_name
from penstock.errors import HttpError
from penstock.http import Request, Response, text

if TYPE_CHECKING:
    from penstock.nsqlookupd.service import Service

_DONE: Final = text()


class Changes:
    """Handlers."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._registrations = service.registrations
        self._logger = service.logger

    def create_topic(self, request: Request) -> Response:
        topic = valid_name(request, "topic")
        self._logger.info("DB: adding topic(%s)", topic)
        self._registrations.create(topic)
        return _DONE

    def delete_topic(self, request: Request) -> Response:
        topic = argument(request, "topic")
        self._logger.info("DB: removing topic(%s)", topic)
        self._registrations.delete_topic(topic)
        return _DONE

    def tombstone(self, request: Request) -> Response:
        topic, node = argument(request, "topic"), argument(request, "node")
        self._logger.info("DB: setting tombstone for producer@%s of topic(%s)", node, topic)
        self._registrations.tombstone(topic, node, self._service.advance())
        self._service.set_timer()
        return _DONE

    def create_channel(self, request: Request) -> Response:
        topic, channel = valid_name(request, "topic"), valid_name(request, "channel")
        self._logger.info("DB: adding channel(%s) in topic(%s)", channel, topic)
        self._registrations.create(topic, channel)
        return _DONE

    def delete_channel(self, request: Request) -> Response:
        topic, channel = valid_name(request, "topic"), valid_name(request, "channel")
        if not self._registrations.delete_channel(topic, channel):
            raise HttpError(404, "CHANNEL_NOT_FOUND")
        self._logger.info("DB: removing channel(%s) from topic(%s)", channel, topic)
        return _DONE
