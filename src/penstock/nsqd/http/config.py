"""`/config/...`: each option by its key in the config file, and the two that may be changed while the node runs."""

from __future__ import annotations

import json as codec
from dataclasses import replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from penstock.daemon.logging import LEVEL, Level
from penstock.errors import BadOption, HttpError
from penstock.http import Request, Response, json, text
from penstock.nsqd.options import Options
from penstock.options.table import options_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.nsqd.service import Service

TOO_BIG: Final = "INVALID_VALUE"  # also of an empty value, as in nsqd
_FIELDS: Final = {row.key: row.field for row in options_of(Options) if not row.deprecated}


class Config:
    """`on_level` is told of another log level, when it is set."""

    def __init__(self, service: Service, on_level: Callable[[], None]) -> None:
        self._service = service
        self._on_level = on_level

    def get(self, request: Request) -> Response:
        field = _FIELDS.get(request.name)
        if field is None:
            raise HttpError(400, "INVALID_OPTION")
        return _shown(getattr(self._service.options, field))

    def put(self, request: Request) -> Response:
        if not request.body:
            raise HttpError(413, TOO_BIG)
        if request.name == "log_level":
            self._set(log_level=_level(request.body))
            self._service.logger.level = self._service.options.log_level
            self._on_level()
        elif request.name == "nsqlookupd_tcp_addresses":
            self._set(nsqlookupd_tcp_addresses=_addresses(request.body))
            self._service.lookups.set_addresses(self._service.options.nsqlookupd_tcp_addresses)
        else:
            raise HttpError(400, "INVALID_OPTION")
        return self.get(request)

    def _set(self, **values: Any) -> None:
        try:
            self._service.options = replace(self._service.options, **values)
        except BadOption:
            raise HttpError(400, "INVALID_VALUE") from None


def _shown(value: Any) -> Response:
    """Words as they are, all else as JSON: durations in ns, and words that NSQ has numbers for as these."""
    if isinstance(value, str):
        return text(value)
    return json(int(value) if isinstance(value, IntEnum) else value)


def _level(body: bytes) -> Level:
    try:
        return LEVEL.parse(body.decode().lower())
    except ValueError:
        raise HttpError(400, "INVALID_VALUE") from None


def _addresses(body: bytes) -> tuple[str, ...]:
    try:
        found = codec.loads(body)
    except ValueError:
        found = False
    if found is None:
        return ()
    if not isinstance(found, list) or not all(isinstance(address, str) for address in found):
        raise HttpError(400, "INVALID_VALUE")
    return tuple(found)
