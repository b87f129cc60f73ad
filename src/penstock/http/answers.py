"""Answers as NSQ gives them: what it calls v1, plain text, and errors. Knows no route and no request."""

from __future__ import annotations

import json as codec
from typing import TYPE_CHECKING, Final

from penstock.http.response import Response

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION: Final = {"X-Nsq-Content-Type": "nsq; version=1.0"}
TEXT: Final = {"Content-Type": "text/plain; charset=utf-8"}
JSON: Final = {"Content-Type": "application/json; charset=utf-8"} | VERSION
VERSIONED_TEXT: Final = VERSION | TEXT


def plain(body: str | bytes, status: int = 200) -> Response:
    """Text without NSQ's version header: `/ping`."""
    return Response(status, _bytes(body), TEXT)


def text(body: str | bytes = b"", headers: Mapping[str, str] | None = None) -> Response:
    """Text, such as `OK`; without any, what a command answers that has nothing to say."""
    return Response(200, _bytes(body), {**(VERSIONED_TEXT if body else VERSION), **(headers or {})})


def json(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A value as JSON; bytes are JSON already."""
    return Response(status, value if isinstance(value, bytes) else encoded(value), {**JSON, **(headers or {})})


def error(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """NSQ's one shape of an error: `{"message":"TOPIC_NOT_FOUND"}`."""
    return json({"message": message}, status, headers)


def encoded(value: object) -> bytes:
    """JSON without spaces, as Go writes it."""
    text = codec.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "surrogateescape")


def _bytes(body: str | bytes) -> bytes:
    return body if isinstance(body, bytes) else body.encode()
