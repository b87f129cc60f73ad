"""A head that comes again: found when it is the same, byte for byte, and otherwise never."""

from __future__ import annotations

import pytest

from penstock.http.head import LONGEST, Head, learn
from penstock.http.limits import Limits
from penstock.http.parser import Parser
from tests.unit.http.clients import chunked, echoing, get, post


def learned(data: bytes) -> Head | None:
    """What is kept of a connection's first request."""
    parser = Parser(echoing(max_body=200).find, Limits())
    parser.feed(data)
    (request,) = parser.requests
    return learn(data, request)


def known(data: bytes) -> Head:
    head = learned(data)
    assert head is not None
    return head


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(get("/echo", "Connection: close"), id="the-last"),
        pytest.param(b"GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", id="1.0"),
        pytest.param(chunked(b"a"), id="chunks"),
        pytest.param(post(b"a", "/echo", "Expect: 100-continue"), id="asks-before-it-sends"),
        pytest.param(get("/echo", f"X: {'y' * LONGEST}"), id="long"),
    ],
)
def test_a_special_head_is_not_kept(data: bytes) -> None:
    assert learned(data) is None


@pytest.mark.parametrize("size", [0, 1, 9, 10, 99, 100, 200])
def test_a_head_with_another_size_is_the_same_head(size: int) -> None:
    head = known(post(b"hello"))
    data = b"before" + post(b"x" * size) + b"behind"
    request = head.again(data, len(b"before"))
    assert request is not None
    assert request.body == b"x" * size
    assert data[head.end :] == b"behind"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(post(b"hello")[:-1], id="not-whole"),
        pytest.param(post(b"hello")[:20], id="not-even-its-head"),
        pytest.param(post(b"hello", "/small"), id="another-path"),
        pytest.param(post(b"hello", "/echo", "X: y"), id="another-header"),
        pytest.param(post(b"x" * 201), id="too-big"),
        pytest.param(post(b"hello").replace(b": 5", b": +5"), id="a-sign"),
        pytest.param(post(b"hello").replace(b": 5", b": "), id="no-digits"),
        pytest.param(post(b"hello").replace(b": 5", b": \xb2"), id="no-ascii-digit"),
        pytest.param(post(b"hello").replace(b": 5", b": 000000005"), id="many-digits"),
        pytest.param(post(b"hello").replace(b"5\r\n\r\n", b"5\r\nX: y\r\n\r\n"), id="a-header-behind"),
        pytest.param(get(), id="another-method"),
    ],
)
def test_anything_else_is_not(data: bytes) -> None:
    assert known(post(b"hello")).again(data, 0) is None


def test_a_head_without_a_body_comes_again_too() -> None:
    head = known(get("/echo?a=1"))
    request = head.again(get("/echo?a=1") + get(), 0)
    assert request is not None
    assert (request.query, request.body, head.end) == (b"a=1", b"", len(get("/echo?a=1")))
    assert head.again(get("/echo?a=2"), 0) is None
