"""The table's answers are nsqd's own, as a built one gave them, but for HEAD, which there is 405."""

from __future__ import annotations

import pytest

from penstock.http import Request, Response, Route, Routes, always, text


@pytest.fixture
def routes() -> Routes:
    routes = Routes()
    for method, path in [
        ("GET", "/ping"), ("POST", "/pub"), ("GET", "/config/:opt"), ("PUT", "/config/:opt"), ("GET", "/debug/pprof/"),
        ("POST", "/topic/create"),
    ]:  # fmt: skip
        routes.add(method, path, always(text(f"{method} {path}")).handler)
    return routes


def answer(routes: Routes, method: str, target: str) -> Response:
    path, _, query = target.encode().partition(b"?")
    route = routes.find(method.encode(), path)
    given = route.handler(Request(method.encode(), path, query, {}, route, None))
    assert isinstance(given, Response)
    return given


@pytest.mark.parametrize(
    ("method", "target", "expected"),
    [
        pytest.param("GET", "/ping", b"GET /ping", id="plain"),
        pytest.param("HEAD", "/ping", b"GET /ping", id="head-is-answered-as-get"),
        pytest.param("GET", "/p%69ng", b"GET /ping", id="escaped"),
        pytest.param("GET", "http://a:1/ping", b"GET /ping", id="with-its-origin"),
        pytest.param("GET", "/config/log_level", b"GET /config/:opt", id="any-name"),
        pytest.param("PUT", "/config/x", b"PUT /config/:opt", id="any-name-by-method"),
        pytest.param("GET", "/config/log%5Flevel", b"GET /config/:opt", id="any-name-escaped"),
        pytest.param("GET", "/debug/pprof/", b"GET /debug/pprof/", id="ends-with-a-slash"),
    ],
)
def test_a_path_is_found_by_what_it_means(routes: Routes, method: str, target: str, expected: bytes) -> None:
    assert answer(routes, method, target).body == expected


@pytest.mark.parametrize(
    ("method", "target", "status", "location"),
    [
        pytest.param("GET", "/ping/", 301, "/ping", id="slash-too-many"),
        pytest.param("GET", "/debug/pprof", 301, "/debug/pprof/", id="slash-too-few"),
        pytest.param("GET", "/PING", 301, "/ping", id="capitals"),
        pytest.param("GET", "//ping", 301, "/ping", id="two-slashes"),
        pytest.param("GET", "/pub/../ping", 301, "/ping", id="dots"),
        pytest.param("GET", "/ping%2F", 301, "/ping", id="escaped-slash"),
        pytest.param("HEAD", "/ping/", 301, "/ping", id="head"),
        pytest.param("POST", "/pub/?topic=a%23", 307, "/pub?topic=a%23", id="another-method-keeps-its-body-and-query"),
        pytest.param("PUT", "/Config/a%20b/", 307, "/config/a%20b", id="name"),
    ],
)
def test_a_path_that_is_meant_but_not_written_so_is_redirected(
    routes: Routes, method: str, target: str, status: int, location: str
) -> None:
    given = answer(routes, method, target)
    assert given.status == status
    assert f"\r\nLocation: {location}\r\n".encode() in given.head


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", "/nope"), ("GET", "/"), ("GET", "//"), ("PUT", "/pub/"), ("POST", "/PING"), ("OPTIONS", "/nope"),
        ("GET", "/config/"), ("GET", "/config/a/b"), ("GET", "/config/a%2Fb"), ("GET", "/ping#x"), ("GET", "*"),
        ("CONNECT", "a:80"), ("GET", "http://a"), ("GET", "/ping%0d%0aX:y/"),
    ],
)  # fmt: skip
def test_what_is_nowhere_is_not_found(routes: Routes, method: str, target: str) -> None:
    given = answer(routes, method, target)
    assert (given.status, given.body) == (404, b'{"message":"NOT_FOUND"}')


@pytest.mark.parametrize(
    ("method", "target", "allowed"),
    [
        pytest.param("POST", "/ping", b"GET, HEAD, OPTIONS", id="get"),
        pytest.param("HEAD", "/pub", b"OPTIONS, POST", id="post"),
        pytest.param("DELETE", "/config/x", b"GET, HEAD, OPTIONS, PUT", id="any-name"),
        pytest.param("PATCH", "/p%69ng", b"GET, HEAD, OPTIONS", id="escaped"),
    ],
)
def test_another_method_is_told_which_are_allowed(routes: Routes, method: str, target: str, allowed: bytes) -> None:
    given = answer(routes, method, target)
    assert (given.status, given.body) == (405, b'{"message":"METHOD_NOT_ALLOWED"}')
    assert b"\r\nAllow: %b\r\n" % allowed in given.head
    # and OPTIONS tells the same, where the path is somewhere
    options = answer(routes, "OPTIONS", target)
    assert (options.status, options.body) == (200, b"")
    assert b"\r\nAllow: %b\r\n" % allowed in options.head


def test_options_of_the_server_as_a_whole_says_that_it_is_there(routes: Routes) -> None:
    assert answer(routes, "OPTIONS", "*").status == 200


@pytest.mark.parametrize("path", ["/p%zzng", "/%", "/ping%4"])
def test_a_bad_escape_in_a_path_is_a_bad_request(routes: Routes, path: str) -> None:
    assert answer(routes, "GET", path).status == 400


def test_what_no_handler_answers_takes_no_body(routes: Routes) -> None:
    # given what is found, and what is not
    def refuses(method: bytes, path: bytes) -> bool:
        return routes.find(method, path).refuses

    # then only the latter refuses
    assert not refuses(b"GET", b"/ping")
    assert all(
        (
            refuses(b"POST", b"/ping"),
            refuses(b"POST", b"/nope"),
            refuses(b"POST", b"/pub/"),
            refuses(b"OPTIONS", b"/ping"),
        )
    )


def test_a_route_of_one_s_own_may_answer_everything() -> None:
    # given a table of routes that is none, as for a node that wants TLS
    everything = Route(lambda _request: text("no"), quiet=True)
    # then it has the limits that it was given
    assert (everything.max_body, everything.too_big, everything.refuses) == (64 << 10, "BODY_TOO_BIG", False)
