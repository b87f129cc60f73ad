"""`/lookup`, `/topics`, `/channels`, `/nodes`: who has what. A look-up can wait until the answer is another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from penstock.daemon.arguments import argument
from penstock.errors import HttpError
from penstock.http import Request, Response, error, json
from penstock.options import duration

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from penstock.nsqlookupd.registrations import Nsqd
    from penstock.nsqlookupd.service import Service

REVISION: Final = "X-Penstock-Revision"
LONGEST: Final = 300.0  # seconds that are waited at most


class Lookups:
    """Handlers."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._registrations = service.registrations

    def lookup(self, request: Request) -> Response | Awaitable[Response]:
        topic, seconds, since = argument(request, "topic"), _wait(request), request.arg("since")
        self._service.advance()
        if seconds and since == self._revision(topic):
            return self._changed(topic, since, seconds)
        return self._found(topic)

    async def _changed(self, topic: str, since: str, seconds: float) -> Response:
        if since == self._revision(topic):  # it may have changed before the loop came here
            await self._service.waiting.until_changed(topic, seconds)
            self._service.advance()
        return self._found(topic)

    def _found(self, topic: str) -> Response:
        revision = {REVISION: self._revision(topic)}
        if topic not in self._registrations.topics:
            return error(404, "TOPIC_NOT_FOUND", revision)
        producers = [_producer(nsqd) for nsqd in self._registrations.shown(topic)]
        return json({"channels": self._registrations.channels(topic), "producers": producers}, headers=revision)

    def _revision(self, topic: str) -> str:
        return f"{self._service.run}-{self._registrations.revision(topic)}"

    def topics(self, _request: Request) -> Response:
        return json({"topics": sorted(self._registrations.topics)})

    def channels(self, request: Request) -> Response:
        return json({"channels": self._registrations.channels(argument(request, "topic"))})

    def nodes(self, _request: Request) -> Response:
        self._service.advance()
        return json({"producers": [_node(nsqd) for nsqd in self._registrations.nsqds if nsqd.active]})


def _wait(request: Request) -> float:
    """Seconds."""
    text = request.arg("wait")
    if text is None:
        return 0
    try:
        seconds = duration(text) / 1e9
    except ValueError:
        seconds = -1
    if seconds < 0:
        raise HttpError(400, "INVALID_ARG_WAIT")
    return min(seconds, LONGEST)


def _producer(nsqd: Nsqd) -> dict[str, Any]:
    return {"remote_address": nsqd.address, **nsqd.said._asdict()}


def _node(nsqd: Nsqd) -> dict[str, Any]:
    """Also of topics for which it is tombstoned."""
    topics = sorted(nsqd.topics.items())
    return {
        **_producer(nsqd),
        "tombstones": [serving.tombstoned for _, serving in topics],
        "topics": [name for name, _ in topics],
    }
