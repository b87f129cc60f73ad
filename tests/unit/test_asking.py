"""One GET, against a server that says what a test wants it to."""

from __future__ import annotations

import asyncio

import pytest

from penstock.asking import ask


async def asked(answer: bytes) -> tuple[int, bytes, bytes]:
    """Status, body, and what the server was sent."""
    sent = b""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        sent = await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        status, headers, body = await ask("127.0.0.1", port, "/channels?topic=t")
    assert all(name == name.lower() for name in headers)
    return status, body, sent.replace(b":%d" % port, b":0")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", (200, b"{}"), id="of a size"),
        pytest.param(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", (404, b""), id="empty"),
        pytest.param(b"HTTP/1.0 200 OK\r\n\r\nall", (200, b"all"), id="up to the end"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
            (200, b"{}"),
            id="chunks",
        ),
    ],
)
def test_an_answer_is_taken_however_its_end_is_told(answer: bytes, expected: tuple[int, bytes]) -> None:
    status, body, sent = asyncio.run(asked(answer))
    assert (status, body) == expected
    assert sent == b"GET /channels?topic=t HTTP/1.1\r\nHost: 127.0.0.1:0\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Le", id="half a head"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}", id="half a body"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", id="half of the chunks"),
        pytest.param(b"\0\0\0\2OK", id="no HTTP"),
    ],
)
def test_what_is_no_answer_is_an_error(answer: bytes) -> None:
    with pytest.raises(ConnectionError):
        asyncio.run(asked(answer))
