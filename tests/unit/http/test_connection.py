"""One client's connection: order, keeping alive, waiting, slow and half-open clients, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from penstock.errors import HttpError
from penstock.http import Handler, Later, Limits, Request, Response, Routes, Server, text
from penstock.http.limits import LARGE, SLICE, SLOWEST, TURN
from tests.unit.http.clients import Answer, Client, Time, chunked, echo, echoing, get, one, post, serve


class Board:
    """A handler whose answers are given when the test says so."""

    def __init__(self) -> None:
        self.asked: list[tuple[Request, Later]] = []

    def __call__(self, request: Request) -> Later:
        later = Later()
        self.asked.append((request, later))
        return later

    def answer(self, number: int = -1) -> None:
        request, later = self.asked[number]
        later.answer(echo(request))


def move(server: Server, clock: Time, seconds: float) -> None:
    """The time goes on, and the server looks at it."""
    clock.now += seconds
    server.sweep()


def serve_at(clock: Time, routes: Routes, limits: Limits | None = None) -> Server:
    return serve(routes, clock=clock, limits=limits)


# --- requests and answers


def test_a_connection_is_kept_for_the_next_request() -> None:
    client = Client(serve(echoing()))
    client.say(get("/echo?1")).say(post(b"two")).say(get("/echo?3"))
    assert client.bodies == [b"/echo?1", b"two", b"/echo?3"]
    assert not client.wire.is_closing()


def test_what_is_sent_at_once_is_answered_in_order_and_in_one_write() -> None:
    client = Client(serve(echoing()))
    client.say(get("/echo?1") + post(b"two") + chunked(b"th", b"ree") + get("/nope"))
    assert client.bodies == [b"/echo?1", b"two", b"three", b'{"message":"NOT_FOUND"}']
    assert client.wire.writes == 1


def test_an_answer_has_a_date_and_what_the_version_asks_for() -> None:
    client = Client(serve(echoing()))
    client.say(get())
    assert client.answers()[0].headers == {
        "X-Nsq-Content-Type": "nsq; version=1.0",
        "Content-Type": "text/plain; charset=utf-8",
        "Content-Length": "5",
        "Date": "Fri, 02 Jan 2026 12:04:05 GMT",
    }


@pytest.mark.parametrize(
    ("request_", "header", "closed"),
    [
        pytest.param(get(), None, False, id="1.1"),
        pytest.param(get("/echo", "Connection: close"), "close", True, id="1.1-the-last"),
        pytest.param(b"GET /echo HTTP/1.0\r\n\r\n", "close", True, id="1.0"),
        pytest.param(b"GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "keep-alive", False, id="1.0-kept"),
    ],
)
def test_a_connection_lasts_as_long_as_the_client_wants(request_: bytes, header: str | None, closed: bool) -> None:
    client = Client(serve(echoing()))
    client.say(request_)
    assert client.answers()[0].headers.get("Connection") == header
    assert client.wire.closed == closed


def test_head_has_the_headers_of_get_alone() -> None:
    client = Client(serve(echoing()))
    client.say(b"HEAD /echo HTTP/1.1\r\nHost: a\r\n\r\n" + get())
    head, body = client.answers("HEAD", "GET")
    assert head.headers == body.headers
    assert (head.body, body.body) == (b"", b"/echo")


def test_a_large_body_is_not_copied_behind_its_head() -> None:
    client = Client(serve(echoing()))
    client.say(post(b"x" * (LARGE + 1)))
    assert client.bodies == [b"x" * (LARGE + 1)]
    assert client.wire.writes == 2


def test_who_asks_whether_to_send_a_body_is_told_to() -> None:
    client = Client(serve(echoing()))
    request = post(b"hello", "/echo", "Expect: 100-continue")
    client.say(request[:-5])
    assert bytes(client.wire.sent) == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.wire.sent.clear()
    client.say(request[-5:])
    assert client.bodies == [b"hello"]


def test_who_does_not_wait_to_be_told_is_not() -> None:
    client = Client(serve(echoing()))
    client.say(post(b"hello", "/echo", "Expect: 100-continue"))
    assert client.bodies == [b"hello"]


def test_a_body_that_is_too_big_is_refused_unread_and_the_client_gets_to_know() -> None:
    client = Client(serve(echoing()))
    # given a client that has sent no more than the head
    client.say(post(b"x" * 11, "/small", "Expect: 100-continue")[:-11])
    # then it is answered, nothing more is sent, and what it still sends is passed over until it stops
    assert client.answers()[0].body == b'{"message":"BODY_TOO_BIG"}'
    assert client.answers()[0].headers["Connection"] == "close"
    assert (client.wire.ended, client.wire.is_closing()) == (True, False)
    client.say(b"x" * 11)
    client.end()
    assert client.wire.closed
    assert client.statuses == [413]


# --- handlers


@pytest.mark.parametrize(
    ("problem", "expected", "reported"),
    [
        pytest.param(HttpError(404, "TOPIC_NOT_FOUND"), (404, b'{"message":"TOPIC_NOT_FOUND"}'), False, id="meant"),
        pytest.param(RuntimeError("a bug"), (500, b'{"message":"INTERNAL_ERROR"}'), True, id="a-bug"),
    ],
)
def test_what_a_handler_raises_is_answered(problem: Exception, expected: tuple[int, bytes], reported: bool) -> None:
    def raises(_request: Request) -> Response:
        raise problem

    async def raises_later(_request: Request) -> Response:
        raise problem

    async def ask(handler: Handler) -> list[tuple[int, bytes]]:
        client = Client(serve(one(handler), on_error=lambda request, error: seen.append((request, error))))
        client.say(get("/") * 2)
        await settled(client)
        assert not client.wire.is_closing()
        return [(answer.status, answer.body) for answer in client.answers()]

    for handler in (raises, raises_later):
        seen: list[tuple[Request | None, BaseException]] = []
        assert asyncio.run(ask(handler)) == [expected] * 2
        assert [error for _, error in seen] == [problem] * 2 * reported


async def settled(client: Client) -> None:
    """All that the loop has to do is done."""
    for _ in range(50):
        await asyncio.sleep(0)


def test_an_answer_that_comes_later_holds_those_behind_it_back() -> None:
    board = Board()
    routes = echoing()
    routes.add("POST", "/later", board)
    client = Client(serve(routes))
    # given three requests, the first of which takes its time
    client.say(post(b"1", "/later") + get("/echo?2") + post(b"3", "/later"))
    assert (client.bodies, len(board.asked)) == ([], 1)
    # when it is answered, so is what waited, up to the next of its kind
    board.answer()
    assert (client.bodies, len(board.asked)) == ([b"1", b"/echo?2"], 2)
    board.answer()
    assert client.bodies == [b"1", b"/echo?2", b"3"]
    # and the connection goes on
    client.say(get())
    assert client.statuses == [200] * 4


def test_an_answer_that_is_known_when_the_handler_returns_is_given_at_once() -> None:
    def handler(request: Request) -> Later:
        later = Later()
        later.answer(echo(request))
        return later

    client = Client(serve(one(handler)))
    client.say(post(b"1", "/") + post(b"2", "/"))
    assert client.bodies == [b"1", b"2"]


def test_an_answer_to_a_client_that_is_gone_is_dropped() -> None:
    board = Board()
    client = Client(serve(one(board)))
    client.say(get("/"))
    client.wire.close()
    board.answer()
    assert bytes(client.wire.sent) == b""


def test_while_an_answer_is_made_no_more_is_read_than_one_piece() -> None:
    board = Board()
    client = Client(serve(one(board)))
    client.say(get("/"))
    assert client.wire.reading
    # given a client that goes on all the same
    client.say(get("/"))
    assert not client.wire.reading
    # when all that was said is answered, it is read again
    board.answer()
    board.answer()
    assert (client.statuses, client.wire.reading) == ([200, 200], True)


def test_a_flood_of_requests_lets_others_have_their_turn() -> None:
    async def flood() -> tuple[int, int]:
        client = Client(serve(echoing()))
        client.say(get() * (TURN + 1))
        first = len(client.answers())
        await asyncio.sleep(0)
        return first, len(client.answers())

    assert asyncio.run(flood()) == (TURN, TURN + 1)


def test_more_than_a_slice_at_once_is_all_the_same_answered() -> None:
    async def flood() -> list[Answer]:
        client = Client(serve(echoing()))
        client.say(post(b"x" * 100) * (3 * SLICE // 100))
        await settled(client)
        return client.answers()

    assert [answer.body for answer in asyncio.run(flood())] == [b"x" * 100] * (3 * SLICE // 100)


# --- slow, half-open and silent clients


def test_a_client_that_does_not_take_its_answers_is_not_read() -> None:
    client = Client(serve(echoing()))
    client.wire.slow = True
    client.say(post(b"a" * 100))
    # given a first answer that nobody takes
    client.say(post(b"b")).say(post(b"c"))
    assert (client.bodies, client.wire.reading) == ([b"a" * 100], False)
    # when it is taken
    client.wire.take()
    # then it goes on
    assert (client.bodies, client.wire.reading) == ([b"a" * 100, b"b"], True)


def test_a_client_that_does_not_take_its_answers_is_cut_off_in_the_end() -> None:
    clock, limits = Time(), Limits()
    server = serve_at(clock, echoing())
    client = Client(server)
    client.wire.slow = True
    size = int(SLOWEST * 10)
    client.say(post(b"a" * size)[:SLICE])
    for at in range(SLICE, len(post(b"a" * size)), SLICE):
        client.say(post(b"a" * size)[at : at + SLICE])
    # given as much time as so many bytes may take, and not more
    move(server, clock, limits.body_time)
    assert not client.wire.cut
    move(server, clock, limits.body_time)
    assert client.wire.cut


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        pytest.param(get()[:-2], Limits().head_time, id="head"),
        pytest.param(b"G", Limits().head_time, id="hardly-begun"),
        pytest.param(post(b"hello")[:-1], Limits().body_time + 5 / SLOWEST, id="body"),
        pytest.param(chunked(b"a")[:-2], Limits().body_time + (1 << 20) / SLOWEST, id="chunks"),
    ],
)
def test_a_request_that_takes_too_long_is_told_so(said: bytes, seconds: float) -> None:
    clock = Time()
    server = serve_at(clock, echoing())
    client = Client(server)
    client.say(said)
    # given a little less than its time, and then a little more
    move(server, clock, seconds - 0.1)
    assert not client.wire.sent
    move(server, clock, 0.2)
    assert (client.statuses, client.wire.ended) == ([408], True)


def test_bytes_one_by_one_do_not_prolong_the_time_of_a_head() -> None:
    clock = Time()
    server = serve_at(clock, echoing())
    client = Client(server)
    for byte in get()[:-4]:
        client.say(bytes([byte]))
        move(server, clock, 0.5)
    assert client.statuses == [408]


def test_a_silent_client_is_left_alone_for_a_while_and_then_closed() -> None:
    clock, limits = Time(), Limits()
    server = serve_at(clock, echoing())
    client = Client(server)
    client.say(get())
    move(server, clock, limits.idle_time - 1)
    client.say(get())
    move(server, clock, limits.idle_time - 1)
    assert not client.wire.is_closing()
    move(server, clock, 2)
    assert (client.wire.closed, client.wire.cut) == (True, False)
    assert client.statuses == [200, 200]


def test_a_client_that_says_nothing_at_all_is_closed_too() -> None:
    clock = Time()
    server = serve_at(clock, echoing())
    client = Client(server)
    move(server, clock, Limits().idle_time + 1)
    assert client.wire.closed


def test_a_handler_may_take_its_time() -> None:
    clock, board = Time(), Board()
    server = serve_at(clock, one(board))
    client = Client(server)
    client.say(get("/"))
    move(server, clock, 100_000)
    assert not client.wire.is_closing()
    board.answer()
    assert client.statuses == [200]


def test_a_client_that_is_half_closed_gets_the_answers_it_waits_for() -> None:
    board = Board()
    client = Client(serve(one(board)))
    client.say(get("/"))
    client.end()
    assert not client.wire.is_closing()
    board.answer()
    assert (client.statuses, client.wire.closed) == ([200], True)


@pytest.mark.parametrize("said", [b"", get(), get()[:-2], post(b"hello")[:-1]], ids=["nothing", "one", "head", "body"])
def test_a_client_that_ends_is_closed(said: bytes) -> None:
    client = Client(serve(echoing()))
    client.say(said)
    client.end()
    assert client.wire.closed


def test_a_refused_client_that_goes_on_sending_is_closed_when_its_time_is_up() -> None:
    clock, limits = Time(), Limits()
    server = serve_at(clock, echoing())
    client = Client(server)
    client.say(b"\0\r\n\r\n")
    assert (client.statuses, client.wire.ended, client.wire.is_closing()) == ([400], True, False)
    client.say(get() * 10)
    move(server, clock, limits.linger_time + 1)
    assert client.wire.cut
    assert client.statuses == [400]


def test_where_one_side_cannot_end_alone_a_refused_client_is_closed_at_once() -> None:
    client = Client(serve(echoing()), can_end=False)  # as under TLS
    client.say(b"\0\r\n\r\n")
    assert (client.statuses, client.wire.closed) == ([400], True)


# --- a server that stops


def test_when_the_server_stops_idle_clients_are_closed_and_others_answered_first() -> None:
    board = Board()
    server = serve(one(board))
    idle, busy, sending = Client(server), Client(server), Client(server)
    busy.say(get("/"))
    sending.say(get("/")[:-2])

    async def stop() -> None:
        stopping = asyncio.ensure_future(server.stop(10))
        await asyncio.sleep(0)
        assert (idle.wire.closed, busy.wire.closed, sending.wire.closed) == (True, False, False)
        board.answer(0)
        sending.say(get("/")[-2:])
        board.answer(1)
        await stopping

    asyncio.run(stop())
    assert [client.answers()[0].headers["Connection"] for client in (busy, sending)] == ["close", "close"]
    assert server.connections == set()


def test_what_does_not_end_in_time_is_cut() -> None:
    server = serve(one(Board()))
    client = Client(server)
    client.say(get("/"))
    asyncio.run(server.stop(0))
    assert client.wire.cut


@pytest.mark.parametrize("end", [lambda client: client.wire.close(), None], ids=["client-goes", "server-stops"])
def test_a_handler_whose_client_is_gone_is_cancelled(end: Callable[[Client], None] | None) -> None:
    cancelled: list[bool] = []

    async def forever(_request: Request) -> Response:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise
        return text("never")

    async def stop() -> None:
        server = serve(one(forever))
        client = Client(server)
        client.say(get("/"))
        await asyncio.sleep(0)
        if end is None:
            await server.stop(0)
        else:
            end(client)
            await settled(client)
        assert server.at_work == set()
        assert not client.wire.sent

    asyncio.run(stop())
    assert cancelled == [True]


def test_a_handler_that_is_cancelled_by_another_is_answered() -> None:
    async def cancelled(_request: Request) -> Response:
        raise asyncio.CancelledError

    async def ask() -> list[int]:
        client = Client(serve(one(cancelled), on_error=lambda _request, _problem: None))
        client.say(get("/"))
        await settled(client)
        return client.statuses

    assert asyncio.run(ask()) == [500]


# --- what is told


def test_the_log_is_told_of_every_answer_but_those_of_quiet_routes() -> None:
    clock, lines = Time(), list[tuple[str, int, float]]()

    def slow(request: Request) -> Response:
        clock.now += 0.25
        return echo(request)

    routes = Routes()
    routes.add("GET", "/slow", slow)
    routes.add("GET", "/quiet", echo, quiet=True)
    server = serve(routes, clock=clock, log=lambda request, status, took: lines.append((request.target, status, took)))
    Client(server).say(get("/slow?a") + get("/quiet") + get("/nope"))
    assert lines == [("/slow?a", 200, 0.25), ("/nope", 404, 0.0)]


def test_a_bug_behind_an_answer_cuts_the_connection_and_nothing_else() -> None:
    # given a log that fails
    problems: list[BaseException] = []

    def log(_request: Request, _status: int, _took: float) -> None:
        raise RuntimeError("a bug")

    server = serve(echoing(), log=log, on_error=lambda _request, problem: problems.append(problem))
    client = Client(server)
    client.say(get())
    assert (client.wire.cut, [str(problem) for problem in problems]) == (True, ["a bug"])
    # then another client is served when it does not
    server.log = None
    assert Client(server).say(get()).statuses == [200]
