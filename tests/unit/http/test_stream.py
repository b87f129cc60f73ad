"""Bodies that come in blocks: what is sent, when it is asked for, and how it goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from penstock.http import Request, Response
from penstock.http.stream import send
from tests.unit.http.clients import Client, one, serve


class Blocks:
    """Says which blocks were asked for, and whether it was closed."""

    def __init__(self, *blocks: bytes) -> None:
        self.blocks = blocks
        self.asked = 0
        self.closed = False

    async def __call__(self) -> AsyncIterator[bytes]:
        try:
            for block in self.blocks:
                self.asked += 1
                yield block
        finally:
            self.closed = True


async def at_once() -> None:
    """A client that takes whatever it is sent."""


def sent(blocks: Blocks, length: int | None, *, chunked: bool = False) -> bytes:
    out = bytearray()
    asyncio.run(send(blocks(), length, chunked=chunked, write=out.extend, taken=at_once))
    return bytes(out)


def test_blocks_go_out_as_they_are_or_in_chunks() -> None:
    assert sent(Blocks(b"one", b"", b"two"), 6) == b"onetwo"
    assert sent(Blocks(b"one", b"", b"two"), None) == b"onetwo"
    assert (
        sent(Blocks(b"one", b"", b"x" * 16), None, chunked=True) == b"3\r\none\r\n10\r\n" + b"x" * 16 + b"\r\n0\r\n\r\n"
    )


@pytest.mark.parametrize("blocks", [Blocks(b"12345", b"67"), Blocks(b"12345")], ids=["longer", "shorter"])
def test_a_body_of_another_length_is_an_error(blocks: Blocks) -> None:
    with pytest.raises(ValueError, match="a body of 6 bytes"):
        sent(blocks, 6)
    assert blocks.closed


def test_no_block_is_asked_for_before_those_before_it_are_taken() -> None:
    async def slowly() -> list[int]:
        blocks, seen = Blocks(b"1", b"2", b"3"), list[int]()

        async def taken() -> None:
            seen.append(blocks.asked)

        await send(blocks(), 3, chunked=False, write=lambda _data: None, taken=taken)
        return seen

    assert asyncio.run(slowly()) == [1, 2, 3]


async def settled() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("request_", "length", "headers", "closed"),
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", None, {"Transfer-Encoding": "chunked"}, False, id="chunks"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 6, {"Content-Length": "6"}, False, id="length"),
        pytest.param(b"GET / HTTP/1.0\r\n\r\n", None, {"Connection": "close"}, True, id="up-to-the-end"),
        pytest.param(
            b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", None, {"Connection": "close"}, True, id="1.0-kept"
        ),
    ],
)
def test_a_stream_is_framed_as_the_client_understands_it(
    request_: bytes, length: int | None, headers: dict[str, str], closed: bool
) -> None:
    async def ask() -> Client:
        client = Client(serve(one(lambda _request: Response(200, Blocks(b"one", b"two")(), length=length))))
        client.say(request_)
        await settled()
        return client

    client = asyncio.run(ask())
    (answer,) = client.answers()
    assert answer.body == b"onetwo"
    assert {name: value for name, value in answer.headers.items() if name != "Date"} == headers
    assert client.wire.closed == closed


def test_what_was_asked_behind_a_stream_is_answered_behind_it() -> None:
    async def ask() -> Client:
        client = Client(serve(one(lambda _request: Response(200, Blocks(b"one", b"two")()))))
        client.say(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 3)
        await settled()
        return client

    assert asyncio.run(ask()).bodies == [b"onetwo"] * 3


def test_head_asks_for_no_block() -> None:
    blocks = Blocks(b"one")

    async def ask() -> None:
        client = Client(serve(one(lambda _request: Response(200, blocks(), length=3))))
        client.say(b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
        await settled()
        assert client.answers("HEAD")[0].headers["Content-Length"] == "3"

    asyncio.run(ask())
    assert blocks.asked == 0


def test_a_client_that_takes_slowly_gets_no_more_than_one_block_at_a_time() -> None:
    blocks = Blocks(*[b"x" * 10] * 5)

    async def ask() -> list[int]:
        client = Client(serve(one(lambda _request: Response(200, blocks(), length=50))))
        client.wire.slow = True
        client.say(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await settled()
        before = blocks.asked
        client.wire.take()
        await settled()
        assert client.answers()[0].body == b"x" * 50
        return [before, blocks.asked]

    assert asyncio.run(ask()) == [1, 5]


def test_half_an_answer_is_none() -> None:
    seen: list[tuple[Request | None, str]] = []

    async def fails() -> AsyncIterator[bytes]:
        yield b"half"
        raise RuntimeError("a bug")

    async def ask() -> Client:
        server = serve(
            one(lambda _request: Response(200, fails())),
            on_error=lambda request, problem: seen.append((request, str(problem))),
        )
        client = Client(server)
        client.say(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await settled()
        return client

    assert asyncio.run(ask()).wire.cut
    assert [problem for _, problem in seen] == ["a bug"]


def test_a_stream_whose_client_goes_is_closed() -> None:
    blocks = Blocks(*[b"x"] * 5)

    async def ask() -> None:
        server = serve(one(lambda _request: Response(200, blocks())))
        client = Client(server)
        client.wire.slow = True
        client.say(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await settled()
        client.wire.abort()
        await settled()
        assert server.at_work == set()

    asyncio.run(ask())
    assert (blocks.asked, blocks.closed) == (1, True)
