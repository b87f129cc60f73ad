"""What an nsqd answers over HTTP is taken whole, however it is cut."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from penstock.bench.posting import HttpClient
from penstock.bench.settings import Address
from penstock.errors import BenchFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

ANSWER = b"HTTP/1.1 200 OK\r\nX-NSQ-Content-Type: nsq; version=1.0\r\nContent-Length: 2\r\n\r\nOK"


@pytest.fixture
def ends() -> Iterator[tuple[HttpClient, socket.socket]]:
    """A client, and the server's end of its connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = HttpClient(Address("127.0.0.1", server.getsockname()[1]))
        with server.accept()[0] as other:
            yield client, other
        client.close()


def test_an_answer_that_comes_byte_by_byte_is_whole_with_its_last(ends: tuple[HttpClient, socket.socket]) -> None:
    client, server = ends
    whole = []
    for _ in range(2):
        for byte in ANSWER:
            server.send(bytes([byte]))
            whole.append(client.receive())
    assert whole == ([False] * (len(ANSWER) - 1) + [True]) * 2


def test_any_other_answer_ends_it(ends: tuple[HttpClient, socket.socket]) -> None:
    client, server = ends
    server.send(b"HTTP/1.1 413 Request Entity Too Large\r\nContent-Length: 2\r\n\r\n{}")
    with pytest.raises(BenchFailed, match="413"):
        client.receive()


def test_a_connection_that_ends_is_no_answer(ends: tuple[HttpClient, socket.socket]) -> None:
    client, server = ends
    server.close()
    with pytest.raises(BenchFailed, match="closed"):
        client.receive()
