"""`/producer` and `/producer/mark`, and the key that a publish may have. Knows no log."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import HttpError
from penstock.http import Request, Response, json
from penstock.log.keyed import Key
from penstock.nsqd.http.arguments import number

if TYPE_CHECKING:
    from penstock.nsqd.service import Service

_PRODUCER: Final = re.compile(r"[.a-zA-Z0-9_-]{1,64}")
_DIGEST: Final = re.compile(r"(?:[0-9a-fA-F]{2}){1,64}")


def producer_name(request: Request) -> bytes:
    name = request.arg("producer")
    if name is None:
        raise HttpError(400, "MISSING_ARG_PRODUCER")
    if not _PRODUCER.fullmatch(name):
        raise HttpError(400, "INVALID_ARG_PRODUCER")
    return name.encode()


def key_of(request: Request) -> Key:
    """`producer=`, `sequence=` and `digest=`: all of them."""
    producer, sequence, digest = producer_name(request), number(request, "sequence"), request.arg("digest")
    if digest is None:
        raise HttpError(400, "MISSING_ARG_DIGEST")
    if not _DIGEST.fullmatch(digest):
        raise HttpError(400, "INVALID_ARG_DIGEST")
    return Key(producer, sequence, bytes.fromhex(digest))


class Producers:
    """Handlers."""

    def __init__(self, service: Service) -> None:
        self._node = service.node

    def producer(self, request: Request) -> Response:
        producer = producer_name(request)
        producers = self._node.producers
        return json(
            {
                "node": self._node.data_path.identity,
                "mark": _shown(producers.marks.get(producer)),
                "topics": {name: _shown(found) for name, found in producers.find(producer).items()},
            }
        )

    def mark(self, request: Request) -> None:
        self._node.producers.mark(key_of(request))


def _shown(found: Any) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"sequence": found.sequence, "digest": found.digest.hex(), "when": found.when}
