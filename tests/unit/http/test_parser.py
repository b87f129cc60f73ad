"""What clients may say, and what the parser makes of it: whole, in pieces, bad, too long, endless."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.http import Limits, Request, Response
from penstock.http.limits import DISCARD, SLICE
from penstock.http.parser import BODY, HEAD, IDLE, Parser
from tests.unit.http.clients import chunked, echoing, get, post

LIMITS = Limits(target=100, head=1000)


def parser(*, max_body: int = 1 << 20) -> Parser:
    return Parser(echoing(max_body).find, LIMITS)


def feed(parser: Parser, *parts: bytes) -> list[Request]:
    for part in parts:
        for at in range(0, len(part), SLICE):
            parser.feed(part[at : at + SLICE])
    return parser.requests


def status(request: Request) -> int:
    given = request.route.handler(request)
    assert isinstance(given, Response)
    return given.status


def told(requests: Iterable[Request]) -> list[tuple[object, ...]]:
    """All that a handler can see of them."""
    return [
        (each.method, each.path, each.query, dict(each.headers), each.body, each.keep_alive, each.minor, status(each))
        for each in requests
    ]


REQUESTS = {
    "get": get("/echo?a=1", "X: y", "X: z"),
    "post": post(b"hello"),
    "post-of-nothing": post(b""),
    "chunked": chunked(b"hel", b"lo"),
    "chunked-of-nothing": chunked(),
    "trailer": chunked(b"a")[:-2] + b"X: y\r\n\r\n",
    "chunk-extension": b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;x=y\r\na\r\n0\r\n\r\n",
    "old": b"GET /echo HTTP/1.0\r\n\r\n",
    "old-kept": b"GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "last": get("/echo", "Connection: close"),
    "expects": post(b"hello", "/echo", "Expect: 100-continue"),
    "upgrade-with-a-body": post(b"hello", "/echo", "Connection: Upgrade", "Upgrade: h2c"),
    "nowhere": get("/nope"),
}


@pytest.mark.parametrize("data", REQUESTS.values(), ids=REQUESTS.keys())
def test_a_request_is_the_same_whole_and_byte_by_byte(data: bytes) -> None:
    # given a request in one piece
    whole = parser()
    feed(whole, data)
    assert (len(whole.requests), whole.phase) == (1, IDLE)
    # when it comes byte by byte
    pieces = parser()
    for at in range(len(data)):
        assert pieces.requests == []
        pieces.feed(data[at : at + 1])
    # then it is the same
    assert told(pieces.requests) == told(whole.requests)


@pytest.mark.parametrize("data", [data for name, data in REQUESTS.items() if name not in ("last", "old")])
def test_a_request_that_comes_again_is_the_same(data: bytes) -> None:
    # given a connection that knows the head already
    known = parser()
    feed(known, data)
    # when the request comes again, in one piece with two others, and with part of a fourth
    feed(known, data * 2 + data[:-1])
    feed(known, data[-1:])
    # then all are alike
    first, *others = told(known.requests)
    assert others == [first] * 3


@given(some.lists(some.sampled_from(list(REQUESTS.values())), max_size=6), some.data())
def test_requests_are_the_same_wherever_they_are_cut(requests: list[bytes], data: some.DataObject) -> None:
    # given any requests behind each other, and what they are in one piece
    stream = b"".join(requests)
    whole = parser()
    feed(whole, stream)
    # when the stream is cut anywhere
    cuts = sorted(data.draw(some.lists(some.integers(0, len(stream)), max_size=8)))
    cut = parser()
    feed(cut, *(stream[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)))
    # then they are the same
    assert told(cut.requests) == told(whole.requests)
    assert cut.finished == whole.finished


@given(some.binary(max_size=300), some.sampled_from([b"", *REQUESTS.values()]))
def test_whatever_comes_it_ends_in_requests(noise: bytes, before: bytes) -> None:
    # given anything at all behind a good request or none
    parsing = parser()
    feed(parsing, before, noise, b"\r\n\r\n", noise)
    # then it is answered, or waited for, and no exception says otherwise
    assert all(status(request) in (200, 400, 404, 405, 413, 414, 417, 431, 501, 505) for request in parsing.requests)


@given(some.sampled_from(list(REQUESTS.values())), some.data())
def test_a_flipped_byte_is_answered_too(request: bytes, data: some.DataObject) -> None:
    # given a good request, and once more with one byte changed
    at = data.draw(some.integers(0, len(request) - 1))
    flipped = request[:at] + bytes([request[at] ^ data.draw(some.integers(1, 255))]) + request[at + 1 :]
    parsing = parser()
    feed(parsing, request, flipped)
    # then the good one is what it was
    assert told(parsing.requests[:1]) == told(feed(parser(), request))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"\0\r\n\r\n", 400, id="no-http"),
        pytest.param(b"GET /echo\r\n\r\n", 505, id="no-version"),
        pytest.param(b"GET /echo HTTP/1.1\r\n\r\n", 400, id="no-host"),
        pytest.param(get("/echo", "Host: b"), 400, id="two-hosts"),
        pytest.param(get("/echo", "a b: c"), 400, id="bad-header-name"),
        pytest.param(get("/echo", "a: \0"), 400, id="bad-header-value"),
        pytest.param(get("/echo", "Content-Length: -1"), 400, id="size-below-zero"),
        pytest.param(get("/echo", "Content-Length: 1, 1"), 400, id="two-sizes"),
        pytest.param(post(b"a", "/echo", "Transfer-Encoding: chunked"), 400, id="size-and-chunks"),
        pytest.param(get("/echo", "Transfer-Encoding: gzip, chunked"), 501, id="encoded"),
        pytest.param(b"POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, id="chunks-in-1.0"),
        pytest.param(b"GET /echo HTTP/2.0\r\nHost: a\r\n\r\n", 505, id="version"),
        pytest.param(post(b"a", "/echo", "Expect: wonders"), 417, id="expectation"),
        pytest.param(b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx", 400, id="bad-chunk"),
    ],
)
def test_what_is_no_request_is_refused_behind_those_before_it(data: bytes, expected: int) -> None:
    # given a good request, a bad one and one that nobody will read
    parsing = parser()
    requests = feed(parsing, get() + data + get())
    # then the bad one is answered, as the last
    assert [status(request) for request in requests] == [200, expected]
    assert (parsing.finished, parsing.refused, requests[-1].keep_alive) == (True, True, False)
    # and what comes then is nothing
    parsing.feed(get())
    assert len(parsing.requests) == 2


@pytest.mark.parametrize("cut", [1, 7, SLICE])
def test_a_target_is_bounded_to_the_byte(cut: int) -> None:
    def ask(size: int) -> list[Request]:
        data = get("/echo?" + "x" * (size - len("/echo?")))
        return feed(parser(), *(data[at : at + cut] for at in range(0, len(data), cut)))

    assert [status(request) for request in ask(LIMITS.target)] == [200]
    assert [status(request) for request in ask(LIMITS.target + 1)] == [414]


def test_a_head_is_bounded_to_the_byte() -> None:
    # given headers that take all the room: each costs 32 beside its bytes
    room = LIMITS.head - len("Hosta") - 32 - len("X") - 32
    assert [status(each) for each in feed(parser(), get("/echo", f"X: {'y' * room}"))] == [200]
    # then one byte more is refused, and so are many tiny ones
    assert [status(each) for each in feed(parser(), get("/echo", f"X: {'y' * (room + 1)}"))] == [431]
    assert [status(each) for each in feed(parser(), get("/echo", *["X: y"] * 40))] == [431]


def test_a_body_of_a_known_length_may_come_in_any_pieces() -> None:
    # given request upon request on one connection, each of which has much of its body behind its head
    parsing, body = parser(), bytes(range(256)) * 1000
    for number in range(10):
        head = post(body)[: -len(body)]
        feed(parsing, head + body[:9000])
        assert (parsing.phase, parsing.missing) == (BODY, len(body) - 9000)
        # when the rest is taken in whatever is there of it
        parsing.feed_body(memoryview(body)[9000:200_000])
        assert (parsing.missing, parsing.held > 200_000) == (len(body) - 200_000, True)
        parsing.feed_body(memoryview(body)[200_000:])
        # then it is whole, and nothing of it counts against the next
        assert (parsing.phase, parsing.missing, len(parsing.requests)) == (IDLE, 0, number + 1)
        assert parsing.requests[-1].body == body
    assert {status(request) for request in parsing.requests} == {200}


@pytest.mark.parametrize(
    "begin",
    [
        pytest.param(b"GET /echo HTTP/1.1\r\nX: ", id="header"),
        pytest.param(b"GET /echo HTTP/1.1\r\n", id="header-name"),
        pytest.param(b"GET /", id="target"),
        pytest.param(chunked()[: -len("0\r\n\r\n")] + b"1;", id="chunk-extension"),
        pytest.param(chunked()[:-2] + b"X: ", id="trailer"),
    ],
)
def test_nothing_is_endless(begin: bytes) -> None:
    # given a client that never comes to an end
    parsing = parser()
    feed(parsing, begin)
    # when it has said more than anybody keeps
    for _ in range(10):
        parsing.feed(b"x" * SLICE)
    # then it was refused
    assert [status(request) for request in parsing.requests] in ([431], [414], [400])


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(post(b"x" * 11, "/small"), id="told"),
        pytest.param(post(b"x" * 11, "/small")[:-11], id="told-and-not-sent"),
        pytest.param(chunked(b"x" * 6, b"x" * 5, path="/small"), id="chunks"),
        pytest.param(post(b"x" * 11, "/small", "Expect: 100-continue")[:-11], id="asks-first"),
    ],
)
def test_a_body_that_is_too_big_is_refused_before_it_is_there(body: bytes) -> None:
    parsing = parser()
    assert [status(request) for request in feed(parsing, body)] == [413]
    assert (parsing.finished, parsing.awaits_continue) == (True, False)


def test_a_body_may_be_as_big_as_its_route_says() -> None:
    parsing = parser()
    feed(parsing, post(b"x" * 10, "/small"), chunked(b"x" * 4, b"x" * 6, path="/small"))
    assert [(status(request), request.body) for request in parsing.requests] == [(200, b"x" * 10)] * 2


def test_a_known_head_with_a_body_that_is_too_big_is_refused() -> None:
    parsing = parser()
    feed(parsing, post(b"x" * 10, "/small"))
    assert [status(request) for request in feed(parsing, post(b"x" * 11, "/small"))] == [200, 413]


@pytest.mark.parametrize("size", [2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1])
def test_a_size_that_nobody_can_send_is_refused(size: int) -> None:
    head = f"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n".encode()
    assert [status(request) for request in feed(parser(), head)] == [413]


def test_a_body_that_nobody_wants_is_passed_over_while_it_is_small() -> None:
    # given a body for a path that is nowhere: it is read, and the connection goes on
    requests = feed(parser(), post(b"x" * 100, "/nope"), get())
    assert [status(request) for request in requests] == [404, 200]
    # and one that is big: 404 all the same, and the end
    parsing = parser()
    assert [status(each) for each in feed(parsing, post(b"x" * (DISCARD + 1), "/nope"), get())] == [404]
    assert parsing.finished


def test_who_asks_whether_to_send_a_body_is_asked_for_it_once() -> None:
    parsing = parser()
    head, body = post(b"hello", "/echo", "Expect: 100-continue")[:-5], b"hello"
    # given the head: the client waits
    parsing.feed(head)
    assert (parsing.phase, parsing.awaits_continue, parsing.expected) == (BODY, True, 5)
    # when it sends the body all the same, it need not be asked
    parsing.feed(body)
    assert (parsing.awaits_continue, [request.body for request in parsing.requests]) == (False, [b"hello"])


def test_who_asks_whether_to_send_a_body_that_nobody_wants_is_told_at_once() -> None:
    requests = feed(parser(), post(b"hello", "/nope", "Expect: 100-continue")[:-5])
    assert [status(request) for request in requests] == [404]


def test_the_phases_follow_the_request() -> None:
    parsing = parser()
    phases = []
    for part in (b"", b"POST /echo HT", b"TP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n", b"a", b"b"):
        feed(parsing, part)
        phases.append(parsing.phase)
    assert phases == [IDLE, HEAD, BODY, BODY, IDLE]


@pytest.mark.parametrize("header", [b"", b"Connection: upgrade\r\nUpgrade: h2c\r\n"], ids=["plain", "upgrade"])
def test_what_is_meant_for_another_server_is_not_read(header: bytes) -> None:
    # given CONNECT, behind which another protocol would be spoken
    parsing = parser()
    requests = feed(parsing, b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n" + header + b"\r\n" + get())
    assert [(status(request), request.keep_alive) for request in requests] == [(404, False)]
    assert parsing.finished


def test_a_closed_parser_takes_nothing() -> None:
    parsing = parser()
    parsing.close()
    parsing.feed(get())
    assert parsing.requests == []


def test_headers_that_come_twice_are_one_list() -> None:
    (request,) = feed(parser(), get("/echo", "Accept: a", "ACCEPT: b"))
    assert request.headers[b"accept"] == b"a, b"


def test_the_answer_of_a_route_is_made_for_its_own_request() -> None:
    # given two requests that have all but the body in common
    requests = feed(parser(), post(b"1"), post(b"22"))
    # then each is echoed its own
    assert [request.route.handler(request).body for request in requests] == [b"1", b"22"]  # type: ignore[union-attr]
