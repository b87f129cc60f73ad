from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from penstock.http import Response, error, json, plain, text


async def nothing() -> AsyncIterator[bytes]:
    return
    yield b""


@pytest.mark.parametrize(
    ("response", "head", "body"),
    [
        pytest.param(
            plain("OK"),
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 2\r\n",
            b"OK",
            id="plain",
        ),
        pytest.param(
            text("OK"),
            b"HTTP/1.1 200 OK\r\nX-Nsq-Content-Type: nsq; version=1.0\r\nContent-Type: text/plain; charset=utf-8\r\n"
            b"Content-Length: 2\r\n",
            b"OK",
            id="text",
        ),
        pytest.param(
            text(),
            b"HTTP/1.1 200 OK\r\nX-Nsq-Content-Type: nsq; version=1.0\r\nContent-Length: 0\r\n",
            b"",
            id="nothing-to-say",
        ),
        pytest.param(
            json({"topics": ["é", None], "paused": False}),
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\n"
            b"X-Nsq-Content-Type: nsq; version=1.0\r\nContent-Length: 37\r\n",
            '{"topics":["é",null],"paused":false}'.encode(),
            id="json",
        ),
        pytest.param(
            json(b"[1]"),
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\n"
            b"X-Nsq-Content-Type: nsq; version=1.0\r\nContent-Length: 3\r\n",
            b"[1]",
            id="json-already",
        ),
        pytest.param(
            error(404, "TOPIC_NOT_FOUND"),
            b"HTTP/1.1 404 Not Found\r\nContent-Type: application/json; charset=utf-8\r\n"
            b"X-Nsq-Content-Type: nsq; version=1.0\r\nContent-Length: 29\r\n",
            b'{"message":"TOPIC_NOT_FOUND"}',
            id="error",
        ),
        pytest.param(Response(204), b"HTTP/1.1 204 No Content\r\n", b"", id="bodiless"),
    ],
)
def test_answers_look_as_nsq_s(response: Response, head: bytes, body: bytes) -> None:
    assert (response.head, response.body) == (head, body)


def test_what_a_client_sent_may_be_in_an_error_even_if_it_is_no_text() -> None:
    assert error(400, "bad \udcff").body == b'{"message":"bad \xff"}'


def test_a_stream_has_a_length_only_where_it_is_known() -> None:
    assert b"Content-Length" not in Response(200, nothing()).head
    assert Response(200, nothing(), length=7).head.endswith(b"\r\nContent-Length: 7\r\n")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X", "a\r\nY: b"),
        ("X", "a\nb"),
        ("X", "a\rb"),
        ("X", "a\0"),
        ("X\r\nY", "a"),
        ("X Y", "a"),
        ("X:", "a"),
        ("", "a"),
    ],
)
def test_no_header_breaks_out_of_its_line(name: str, value: str) -> None:
    with pytest.raises(ValueError, match="no header"):
        Response(headers={name: value})


def test_a_whole_answer_is_made_again_when_the_date_is_another() -> None:
    response = Response(200, b"OK")
    first, second = b"Date: a\r\n\r\n", b"Date: b\r\n\r\n"
    whole = response.whole(first)
    assert whole == response.head + first + b"OK"
    assert response.whole(first) is whole
    assert response.whole(second) == response.head + second + b"OK"
