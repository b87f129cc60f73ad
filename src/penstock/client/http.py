"""One GET over HTTP/1.1, as nsqlookupd is asked. Knows asyncio and HTTP; nothing of what is asked for."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from httptools import HttpParserError, HttpResponseParser

from penstock.errors import LookupFailed

if TYPE_CHECKING:
    from penstock.client.address import Address

_LARGEST = 64 << 20  # bytes of an answer


class Answer(NamedTuple):
    status: int
    headers: dict[bytes, bytes]  # names in lower case
    body: bytes


async def get(address: Address, target: str, timeout: float) -> Answer:
    """LookupFailed where none comes in time; the connection is not kept."""
    try:
        async with asyncio.timeout(timeout):
            return await _get(address, target)
    except (OSError, HttpParserError) as error:
        raise LookupFailed(f"{address}: {str(error) or type(error).__name__}") from error


async def _get(address: Address, target: str) -> Answer:
    reader, writer = await asyncio.open_connection(address.host, address.port)
    try:
        writer.write(
            f"GET {target} HTTP/1.1\r\nHost: {address}\r\nAccept: application/vnd.nsq; version=1.0\r\n"
            "Connection: close\r\n\r\n".encode()
        )
        found = _Found()
        parser = HttpResponseParser(found)
        while not found.complete and (data := await reader.read(1 << 16)):
            parser.feed_data(data)
            if len(found.body) > _LARGEST:
                raise LookupFailed(f"{address}: an answer of more than {_LARGEST} bytes")
        if not found.complete and (b"content-length" in found.headers or b"transfer-encoding" in found.headers):
            raise LookupFailed(f"{address}: the connection ended within an answer")
        return Answer(parser.get_status_code(), found.headers, bytes(found.body))
    finally:
        writer.close()


class _Found:
    """What httptools tells of."""

    def __init__(self) -> None:
        self.headers: dict[bytes, bytes] = {}
        self.body = bytearray()
        self.complete = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.lower()] = value

    def on_body(self, part: bytes) -> None:
        self.body += part

    def on_message_complete(self) -> None:
        self.complete = True
