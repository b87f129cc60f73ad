"""`/ping`, `/info` and `/debug`: that it is there, what it is, and all that it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from penstock import NSQ_VERSION, __version__
from penstock.http import Request, Response, json, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.nsqlookupd.registrations import Nsqd, Serving
    from penstock.nsqlookupd.service import Service

_OK: Final = plain("OK")
_INFO: Final = json({"version": NSQ_VERSION, "penstock_version": __version__})
_NO_TIME: Final = -6795364578871345152  # what Go makes of a time that was never set, in ns since 1970


class About:
    """Handlers."""

    def __init__(self, service: Service) -> None:
        self._registrations = service.registrations

    def ping(self, _request: Request) -> Response:
        return _OK

    def info(self, _request: Request) -> Response:
        return _INFO

    def debug(self, _request: Request) -> Response:
        """By `category:topic:channel`, where there is any nsqd."""
        found: dict[str, list[dict[str, Any]]] = {}
        for key, row in self._rows():
            found.setdefault(key, []).append(row)
        return json(dict(sorted(found.items())))

    def _rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for nsqd in self._registrations.nsqds:
            yield "client::", _row(nsqd)
        for name, topic in self._registrations.topics.items():
            for nsqd, serving in topic.served_by.items():
                yield f"topic:{name}:", _row(nsqd, serving)
            for channel, nsqds in topic.channels.items():
                for nsqd in nsqds:
                    yield f"channel:{name}:{channel}", _row(nsqd)


def _row(nsqd: Nsqd, serving: Serving | None = None) -> dict[str, Any]:
    at = serving.tombstoned_at if serving else None
    return {
        "id": nsqd.address,
        **nsqd.said._asdict(),
        "last_update": nsqd.heard,
        "tombstoned": at is not None,
        "tombstoned_at": _NO_TIME if at is None else at,
    }
