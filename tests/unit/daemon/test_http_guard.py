"""The matrix of tokens and routes: each right opens the routes that it is for; without one a route opens to nobody."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from penstock.auth.file import TokenFile
from penstock.auth.grants import GIVEN, Right
from penstock.daemon.http_guard import HttpGuard
from penstock.http import Limits, Response, Routes
from penstock.http.parser import Parser
from penstock.nsqd import http as nsqd
from penstock.nsqd import options as nsqd_options
from penstock.nsqlookupd import http as nsqlookupd
from penstock.nsqlookupd import options as nsqlookupd_options

if TYPE_CHECKING:
    from penstock.http import Request

TOKENS = "; ".join(
    [
        *(f"{right} token-for-{right} {right}:orders.*" for right in sorted(GIVEN)),
        "everywhere token-for-everywhere *:*",
        "nothing token-for-nothing publish:nothing",
    ]
)


def routes_of_nsqd() -> Routes:
    service = cast("Any", SimpleNamespace(options=nsqd_options.Options(debug_http=True), node=None))
    return nsqd.routes(service, nsqd.Ports(), lambda: None)


def routes_of_nsqlookupd() -> Routes:
    options = nsqlookupd_options.Options(debug_http=True)
    service = cast("Any", SimpleNamespace(options=options, registrations=None, logger=None, waiting=None))
    return nsqlookupd.routes(service)


ROUTES = {"nsqd": routes_of_nsqd(), "nsqlookupd": routes_of_nsqlookupd()}
EACH = [
    pytest.param(routes, method, path, right, id=f"{program}-{method}-{path}")
    for program, routes in ROUTES.items()
    for (method, path), right in sorted(routes.rights.items())
]
# What each route of nsqd and nsqlookupd takes. A new one has to be put here, and into docs/security.md.
TAKES: dict[str, set[tuple[str, str]]] = {
    "any": {
        ("GET", "/ping"), ("GET", "/info"), ("GET", "/openapi.json"), ("GET", "/producer"), ("POST", "/producer/mark"),
    },
    "publish": {("POST", path) for path in ("/pub", "/put", "/mpub", "/mput")},
    "subscribe": {
        ("GET", "/log"), ("GET", "/log/at"), ("GET", "/log/read"), ("GET", "/channel/peek"),
        ("POST", "/reader/commit"), ("POST", "/reader/delete"),
    },
    "read": {
        ("GET", path)
        for path in (
            "/stats", "/metrics", "/config/:",
            "/lookup", "/topics", "/channels", "/nodes", "/debug",
        )
    },
}  # fmt: skip


def asked(routes: Routes, method: str, target: str, *headers: str) -> int:
    """The status that a request is refused with before its handler hears of it, or 0."""
    guard = HttpGuard(TokenFile("", TOKENS, "TOKENS", warn=lambda _: None))
    parser = Parser(routes.find, Limits(), None, guard)
    parser.feed("\r\n".join([f"{method} {target} HTTP/1.1", "Host: a", *headers, "", ""]).encode())
    (request,) = parser.requests
    return refused(request)


def refused(request: Request) -> int:
    if not request.route.refuses:
        return 0
    answer = request.route.handler(request)
    return answer.status if isinstance(answer, Response) else -1


def bearer(name: str) -> str:
    return f"Authorization: Bearer token-for-{name}"


@pytest.mark.parametrize(("routes", "method", "path", "right"), EACH)
def test_each_route_takes_the_right_that_is_written_down_for_it(
    routes: Routes, method: str, path: str, right: str
) -> None:
    expected = next((word for word, those in TAKES.items() if (method, path) in those), "admin")
    assert right == expected


@pytest.mark.parametrize("name", [*sorted(GIVEN), "everywhere", "nothing"])
@pytest.mark.parametrize(("routes", "method", "path", "right"), EACH)
def test_a_token_opens_what_it_grants_and_nothing_else(
    routes: Routes, method: str, path: str, right: str, name: str
) -> None:
    path = path.replace(":", "tls_cert")
    # given a token, when a route is asked for with it, about a topic that it is good for
    status = asked(routes, method, f"{path}?topic=orders.eu&channel=shop", bearer(name))
    # then it is open to who has the right, and to who may see more than how things are
    opens = name in (right, "everywhere") or right == "any"
    opens = opens or (right == "read" and name in ("subscribe", "admin"))
    assert status == (0 if opens else 403)
    # and with another topic, or with all of them, to nobody whose right is on some
    for query in ("?topic=bills", "?topic=", ""):
        status = asked(routes, method, path + query, bearer(name))
        assert status == (0 if name == "everywhere" or right == "any" else 403), query


@pytest.mark.parametrize(
    "header",
    [
        pytest.param("", id="nothing"),
        pytest.param("Authorization: token-for-everywhere", id="no-scheme"),
        pytest.param("Authorization: Basic token-for-everywhere", id="another-scheme"),
        pytest.param("Authorization: Bearer", id="no-token"),
        pytest.param("Authorization: Bearer token-for-everywher", id="a-token-cut-short"),
        pytest.param("Authorization: Bearer token-for-everywhere, Bearer x", id="two-in-one"),
        pytest.param("Authorization: Bearer x\r\nAuthorization: Bearer token-for-everywhere", id="two"),
        pytest.param("X-Authorization: Bearer token-for-everywhere", id="another-header"),
    ],
)
@pytest.mark.parametrize(("routes", "method", "path", "right"), EACH)
def test_nothing_is_reachable_without_a_token(routes: Routes, method: str, path: str, right: str, header: str) -> None:
    assert asked(routes, method, path.replace(":", "x"), *([header] if header else [])) == 401


@pytest.mark.parametrize(
    ("method", "target"),
    [("GET", "/nowhere"), ("GET", "/pub"), ("GET", "//ping"), ("GET", "/PING"), ("OPTIONS", "*"), ("HEAD", "/stats")],
)
def test_nor_is_what_is_no_route(method: str, target: str) -> None:
    assert asked(ROUTES["nsqd"], method, target) == 401


def test_a_scheme_is_known_in_any_case() -> None:
    assert asked(ROUTES["nsqd"], "GET", "/stats", "authorization: BEARER token-for-everywhere") == 0


def test_a_route_without_a_right_is_open_to_nobody() -> None:
    # given a route that somebody forgot to give a right
    table = Routes()
    table.add("GET", "/new", lambda _: Response())
    # then not even who may do everything may use it
    assert asked(table, "GET", "/new", bearer("everywhere")) == 403


def test_a_query_that_is_none_is_no_way_around() -> None:
    assert asked(ROUTES["nsqd"], "POST", "/pub?topic=%zz", bearer("publish")) == 400


def test_the_topic_that_is_checked_is_the_one_that_is_published_to() -> None:
    # given a request that names two, of which handlers take the first
    assert asked(ROUTES["nsqd"], "POST", "/pub?topic=bills&topic=orders.eu", bearer("publish")) == 403
    # and one whose name is escaped
    assert asked(ROUTES["nsqd"], "POST", "/pub?topic=orders%2eeu", bearer("publish")) == 0


def test_who_may_not_publish_is_told_before_the_body_is_sent() -> None:
    # given a client that announces a large body, and asks before it sends it
    guard = HttpGuard(TokenFile("", TOKENS, "TOKENS", warn=lambda _: None))
    parser = Parser(ROUTES["nsqd"].find, Limits(), None, guard)
    head = b"POST /mpub?topic=bills HTTP/1.1\r\nHost: a\r\nContent-Length: 5000000\r\nExpect: 100-continue\r\n"
    parser.feed(head + bearer("publish").encode() + b"\r\n\r\n")
    # then it is refused at once
    (request,) = parser.requests
    assert refused(request) == 403
    assert parser.finished


def test_a_token_that_is_taken_away_is_refused_on_a_connection_that_is_kept() -> None:
    # given a connection on which a head comes again and again, and is not parsed any more
    file = TokenFile("", TOKENS, "TOKENS", warn=lambda _: None)
    parser = Parser(ROUTES["nsqd"].find, Limits(), None, HttpGuard(file))
    whole = (
        f"POST /pub?topic=orders.eu HTTP/1.1\r\nHost: a\r\n{bearer('publish')}\r\nContent-Length: 1\r\n\r\na".encode()
    )
    for _ in range(3):
        parser.feed(whole)
        assert refused(parser.requests.pop()) == 0
    # when the tokens are others, and connections are told so
    file.tokens = TokenFile("", "other another-token-for-all *:*", "TOKENS", warn=lambda _: None).tokens
    parser.forget()
    # then it is of no use
    parser.feed(whole)
    assert refused(parser.requests.pop()) == 401


def test_every_right_is_used_by_some_route() -> None:
    used = {right for routes in ROUTES.values() for right in routes.rights.values()}
    assert used == {str(right) for right in Right}
