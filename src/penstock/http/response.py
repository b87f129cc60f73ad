# cython: annotation_typing=False
"""One answer: a status, headers and a body. Knows no request and no NSQ."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

Piece: TypeAlias = bytes | bytearray | memoryview

_STATUS_LINES: Final = {each.value: f"HTTP/1.1 {each.value} {each.phrase}\r\n" for each in HTTPStatus}
_BODILESS: Final = frozenset({204, 304})
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+: [^\x00-\x08\x0a-\x1f\x7f]*")


class Response:
    """May be made once and given many times, unless its body is a stream.

    A streaming body is bytes that come in blocks, each asked for when the client took those before. With `length` they
    must be so many; without, they are sent in chunks. When it fails the connection is cut: half an answer is none.
    """

    __slots__ = ("_date", "_whole", "body", "head", "length", "status")

    def __init__(
        self,
        status: int = 200,
        body: bytes | AsyncIterator[Piece] = b"",
        headers: Mapping[str, str] | None = None,
        *,
        length: int | None = None,
    ) -> None:
        """ValueError for a header that would break out of its line."""
        self.status = status
        self.body = body
        self.length = len(body) if isinstance(body, bytes) else length
        self.head = self._head(headers)
        self._date = self._whole = b""

    def whole(self, date: bytes) -> bytes:
        """Head, date and body of one that is no stream, made once for each date."""
        if self._date is not date:
            self._date, self._whole = date, b"".join((self.head, date, self.body))  # type: ignore[arg-type]
        return self._whole

    def _head(self, headers: Mapping[str, str] | None) -> bytes:
        """Status line and headers, without those that depend on the request, and without the empty line."""
        head = _STATUS_LINES[self.status]
        if headers:
            for header in headers.items():
                line = ": ".join(header)
                if not _HEADER.fullmatch(line):
                    raise ValueError(f"no header: {line!r}")
                head += line + "\r\n"
        if self.length is not None and self.status not in _BODILESS:
            head += f"Content-Length: {self.length}\r\n"
        return head.encode("latin-1")
