"""The server on real sockets: TCP in both families and unix; its clock; how it stops."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest
import uvloop

from penstock.http import Limits, Request, Response, Server, text
from tests.unit.http.clients import NOON, Answer, Time, echo, echoing, get, one, post, read_answers, serve


def bound(family: str, folder: Path) -> socket.socket:
    if family == "unix":
        sock = socket.socket(socket.AF_UNIX)
        sock.bind(str(folder / "http.sock"))
        return sock
    if family == "ipv6":
        try:
            return socket.create_server(("::1", 0), family=socket.AF_INET6)
        except OSError:
            pytest.skip("this machine has no IPv6")
    return socket.create_server(("127.0.0.1", 0))


async def connect(sock: socket.socket) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    name = sock.getsockname()
    if sock.family == socket.AF_UNIX:
        return await asyncio.open_unix_connection(name)
    return await asyncio.open_connection(*name[:2])


async def ask(server: Server, sock: socket.socket, *parts: bytes) -> list[Answer]:
    """What a client that sends these and then ends is answered."""
    await server.listen(sock)
    reader, writer = await connect(sock)
    for part in parts:
        writer.write(part)
        await writer.drain()
    writer.write_eof()
    answers = read_answers(await reader.read())
    writer.close()
    await writer.wait_closed()
    await server.stop(5)
    return answers


@pytest.mark.parametrize("family", ["ipv4", "ipv6", "unix"])
@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_clients_are_served_on_every_kind_of_socket(tmp_path: Path, family: str, factory: object) -> None:
    expected = {"ipv4": b"127.0.0.1:", "ipv6": b"[::1]:", "unix": b"@"}[family]

    def handler(request: Request) -> Response:
        return text(request.remote) if request.method == b"GET" else echo(request)

    with asyncio.Runner(loop_factory=factory) as runner:  # type: ignore[arg-type]
        answers = runner.run(ask(serve(one(handler)), bound(family, tmp_path), get("/"), post(b"hello", "/")))
    assert answers[0].body.startswith(expected)
    assert answers[1].body == b"hello"


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_large_bodies_go_there_and_back(tmp_path: Path, factory: object) -> None:
    # given a body that no socket takes at once
    body = bytes(range(256)) * 4096
    server = serve(echoing())
    with asyncio.Runner(loop_factory=factory) as runner:  # type: ignore[arg-type]
        answers = runner.run(ask(server, bound("ipv4", tmp_path), post(body), get(), post(body)))
    assert [answer.body for answer in answers] == [body, b"/echo", body]


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_client_that_is_refused_reads_why_whatever_it_had_sent(tmp_path: Path, factory: object) -> None:
    # given a client that sends a megabyte where ten bytes may be, without looking
    server = serve(echoing())
    with asyncio.Runner(loop_factory=factory) as runner:  # type: ignore[arg-type]
        answers = runner.run(ask(server, bound("ipv4", tmp_path), post(b"x" * 1_000_000, "/small")))
    assert [answer.status for answer in answers] == [413]


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_client_that_says_nothing_is_closed_by_the_server_itself(tmp_path: Path, factory: object) -> None:
    async def wait() -> bytes:
        server = serve(echoing(), clock=asyncio.get_running_loop().time, limits=Limits(idle_time=0.01))
        sock = bound("ipv4", tmp_path)
        await server.listen(sock)
        reader, writer = await connect(sock)
        found = await reader.read()
        writer.close()
        await server.stop(5)
        return found

    with asyncio.Runner(loop_factory=factory) as runner:  # type: ignore[arg-type]
        assert runner.run(wait()) == b""


def test_a_stopped_server_takes_nobody(tmp_path: Path) -> None:
    async def late() -> None:
        server, sock = serve(echoing()), bound("ipv4", tmp_path)
        address = sock.getsockname()
        await server.listen(sock)
        await server.stop(5)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*address)

    asyncio.run(late())


def test_the_date_is_read_once_for_all() -> None:
    clock, walls = Time(), [NOON, NOON + 1]
    server = Server(echoing().find, clock=clock, wall=lambda: walls[0])
    assert server.date == b"Date: Fri, 02 Jan 2026 12:04:05 GMT\r\n\r\n"
    del walls[0]
    assert b"12:04:05" in server.date
    server.sweep()
    assert b"12:04:06" in server.date
    assert server.idle_deadline == clock.now + Limits().idle_time
