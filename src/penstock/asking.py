"""One request over HTTP to another server, as nsqlookupd and auth servers are asked. Knows asyncio; no route."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from httptools import HttpParserError, HttpResponseParser

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

LARGEST: Final = 64 << 20  # bytes of an answer


class Answer(NamedTuple):
    status: int
    headers: dict[bytes, bytes]  # names in lower case
    body: bytes


async def ask(
    host: str,
    port: int,
    target: str,
    *,
    context: ssl.SSLContext | None = None,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    connect_timeout: float | None = None,
) -> Answer:
    """OSError where there is none. The connection is not kept, and nothing else limits the time.

    With a `context` it goes over TLS; with a `body` it is a POST.
    """
    async with asyncio.timeout(connect_timeout):
        reader, writer = await asyncio.open_connection(host, port, ssl=context)
    try:
        name = f"[{host}]" if ":" in host else host
        told = {"Host": f"{name}:{port}", **(headers or {}), "Connection": "close"}
        if body is not None:
            told["Content-Length"] = str(len(body))
        head = [f"{'GET' if body is None else 'POST'} {target} HTTP/1.1", *map(": ".join, told.items()), "", ""]
        writer.write("\r\n".join(head).encode() + (body or b""))
        found = _Found()
        parser = HttpResponseParser(found)
        try:
            while not found.whole and (data := await reader.read(1 << 16)):
                parser.feed_data(data)
                if len(found.body) > LARGEST:
                    raise ConnectionError(f"an answer of more than {LARGEST} bytes")
        except HttpParserError as error:
            raise ConnectionError(f"no HTTP: {error}") from error
        if not (found.whole or found.ends_with_connection):
            raise ConnectionError("the connection ended within an answer")
        return Answer(parser.get_status_code(), found.headers, bytes(found.body))
    finally:
        writer.close()


class _Found:
    """What httptools tells of."""

    def __init__(self) -> None:
        self.headers: dict[bytes, bytes] = {}
        self.body = bytearray()
        self.whole = False
        self.ends_with_connection = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        self.ends_with_connection = not self.headers.keys() & {b"content-length", b"transfer-encoding"}

    def on_body(self, part: bytes) -> None:
        self.body += part

    def on_message_complete(self) -> None:
        self.whole = True
