# cython: annotation_typing=False
"""The head of a request that comes again. Knows bytes, and no HTTP but where the size of a body stands.

A client mostly sends the same head each time on its connection, but for the digits of Content-Length. What was parsed
and checked once means the same when it comes again byte for byte, and need not be parsed: this is half of the time that
a small request takes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from penstock.http.request import Request

LONGEST: Final = 2048  # one is kept for each connection
_SIZE: Final = re.compile(rb"\r\nContent-Length:[ \t]*([0-9]+)\r\n", re.IGNORECASE)
_DIGITS: Final = 8


class Head:
    """The bytes before the body's size, those behind it, and the first request that had them.

    POST /pub?topic=a HTTP/1.1\\r\\nHost: b\\r\\nContent-Length: | 200 | \\r\\nAccept: */*\\r\\n\\r\\n | body
    """

    __slots__ = ("_after", "_before", "_request", "_size", "_whole", "end")

    def __init__(self, request: Request, before: bytes, after: bytes) -> None:
        self._request = request
        self._before = before
        self._after = after  # empty where there is no size
        self._size = len(request.body)
        self._whole = before + b"%d" % self._size + after if after else before  # as it was the last time
        self.end = 0  # where the request ends that `again` found

    def again(self, data: bytes, at: int) -> Request | None:
        """The request that begins at `at`, if it has this head and is whole."""
        whole = self._whole
        if data.startswith(whole, at):
            at += len(whole)
        elif (at := self._resize(data, at)) < 0:
            return None
        end = at + self._size
        if end > len(data):
            return None
        self.end = end
        return self._request.again(data[at:end])

    def _resize(self, data: bytes, at: int) -> int:
        """Where the body begins, if only its size is another; else -1."""
        after = self._after
        if not after or not data.startswith(self._before, at):
            return -1
        begin = at + len(self._before)
        stop = data.find(b"\r", begin, begin + _DIGITS)
        digits = data[begin:stop]
        if not digits.isdigit() or not data.startswith(after, stop) or int(digits) > self._request.route.max_body:
            return -1
        self._size = int(digits)
        self._whole = data[at : stop + len(after)]
        return stop + len(after)


def learn(data: bytes, request: Request) -> Head | None:
    """The head of the one request that stands in `data`, if there is nothing special about it."""
    end = data.find(b"\r\n\r\n") + 4
    if end > LONGEST or end + len(request.body) != len(data) or not (request.keep_alive and request.minor):
        return None
    if b"transfer-encoding" in request.headers or b"expect" in request.headers:
        return None
    if (size := _SIZE.search(data, 0, end)) is None:
        return None if request.body else Head(request, data[:end], b"")
    return Head(request, data[: size.start(1)], data[size.end(1) : end])
