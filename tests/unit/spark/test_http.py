"""One connection to a node: what it says of what goes wrong, and what it does again."""

from __future__ import annotations

import http.client
import pickle
import socket
from contextlib import closing

import pytest

from penstock.errors import NodeFailed
from penstock.spark.http import Access, Connection, patiently, pause_after
from tests.unit.spark.web import Scripted, answer

ACCESS = Access(timeout=5)


def test_requests_share_a_connection() -> None:
    # given a server that takes one connection and no more
    with Scripted([answer(b"one"), answer(b'{"message":"TOPIC_NOT_FOUND"}', 404), answer(b"{}")]) as server:
        connection = Connection(server.url, ACCESS)
        # when it is asked again and again, then all answers come, whatever their status
        assert connection.ask("POST", "/pub?topic=t", b"m").body == b"one"
        assert connection.ask("GET", "/log").message == "TOPIC_NOT_FOUND"
        assert connection.json("/info") == {}
        connection.close()


def test_a_long_answer_is_read_as_it_comes() -> None:
    chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    with Scripted([chunks, answer(b"next")]) as server:
        connection = Connection(server.url, ACCESS)
        found = connection.stream("/log/read")
        assert isinstance(found, http.client.HTTPResponse)
        room = bytearray(4)
        assert (found.readinto(room), bytes(room)) == (4, b"abcd")
        assert (found.read(), found.read()) == (b"e", b"")
        # and its connection is used again
        assert connection.ask("GET", "/").body == b"next"
        connection.close()


def test_a_get_is_sent_again_where_the_server_had_closed_the_connection() -> None:
    # given a connection that the server closes after an answer
    with Scripted([answer(b"one")], [answer(b"two")]) as server:
        connection = Connection(server.url, ACCESS)
        connection.ask("GET", "/")
        # then a GET goes over a new one
        assert connection.ask("GET", "/").body == b"two"
        connection.close()


def test_nothing_else_is_sent_again() -> None:
    with Scripted([answer(b"one")], [answer(b"never")]) as server:
        connection = Connection(server.url, ACCESS)
        connection.ask("GET", "/")
        with pytest.raises(NodeFailed) as failed:
            connection.ask("POST", "/pub", b"m")
        assert failed.value.passing
        # unless its sender says so
        assert connection.ask("POST", "/pub", b"m").body == b"never"
        connection.close()


def test_who_does_not_answer_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(NodeFailed) as failed:
        Connection(f"http://127.0.0.1:{port}", ACCESS).ask("GET", "/")
    assert (str(failed.value), failed.value.passing) == (
        f"http://127.0.0.1:{port} cannot be reached: Connection refused",
        True,
    )


def test_who_takes_too_long_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        connection = Connection(f"http://127.0.0.1:{silent.getsockname()[1]}", Access(timeout=0.01))
        with pytest.raises(NodeFailed) as failed:
            connection.ask("GET", "/")
    assert str(failed.value).endswith("cannot be reached: it did not answer within 0.01 s")


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", "ended early", id="cut"),
        pytest.param(b"SSH-2.0-OpenSSH\r\n", "is no HTTP", id="another-protocol"),
    ],
)
def test_what_is_no_whole_answer_is_an_error_that_may_pass(raw: bytes, why: str) -> None:
    with Scripted([raw]) as server:
        connection = Connection(server.url, ACCESS)
        with pytest.raises(NodeFailed, match=why) as failed:
            connection.ask("GET", "/")
        assert failed.value.passing
        connection.close()


@pytest.mark.parametrize(("status", "passing"), [(403, False), (404, False), (429, True), (500, True), (503, True)])
def test_a_refusal_does_not_pass_and_a_busy_server_does(status: int, passing: bool) -> None:
    with Scripted([answer(b'{"message":"WHY"}', status)]) as server:
        connection = Connection(server.url, ACCESS)
        with pytest.raises(NodeFailed) as failed:
            connection.json("/log?topic=t")
        connection.close()
    assert (str(failed.value), failed.value.passing) == (f"{server.url}/log?topic=t answers WHY", passing)


def test_what_is_no_json_is_told_as_that() -> None:
    with (
        Scripted([answer(b"<html>")]) as server,
        closing(Connection(server.url, ACCESS)) as connection,
        pytest.raises(NodeFailed, match="is it an nsqd or nsqlookupd"),
    ):
        connection.json("/info")


def test_a_token_is_sent_and_never_shown() -> None:
    # given a token
    access = Access(token="hush", timeout=5)
    with Scripted([answer(b'{"message":"FORBIDDEN"}', 403)]) as server:
        connection = Connection(server.url, access)
        with pytest.raises(NodeFailed) as failed:
            connection.json("/info")
        connection.close()
    # then the server sees it, and nobody else
    assert b"Authorization: Bearer hush\r\n" in server.requests[0]
    assert "hush" not in f"{access!r} {access} {failed.value!r}"
    assert pickle.loads(pickle.dumps(access)) == access


def test_files_that_cannot_be_read_are_told_by_the_options_names() -> None:
    with pytest.raises(NodeFailed, match=r"options tlsCaFile, tlsCertFile, tlsKeyFile: .*No such file"):
        Connection("https://a:1", Access(ca_file="/nowhere"))


def test_what_may_pass_is_tried_again_with_growing_pauses() -> None:
    pauses: list[float] = []
    left = [NodeFailed("a", passing=True), NodeFailed("b", passing=True)]

    def attempt() -> str:
        if left:
            raise left.pop()
        return "there"

    assert patiently(attempt, 3, pauses.append) == "there"
    assert pauses == [0.1, 0.2]


@pytest.mark.parametrize(("passing", "attempts"), [(True, 4), (False, 1)])
def test_it_ends_after_so_many_tries_or_with_what_does_not_pass(passing: bool, attempts: int) -> None:
    tried: list[int] = []

    def attempt() -> None:
        tried.append(1)
        raise NodeFailed("no", passing=passing)

    with pytest.raises(NodeFailed):
        patiently(attempt, 4, lambda _: None)
    assert len(tried) == attempts


def test_pauses_have_an_end() -> None:
    assert [pause_after(failures) for failures in (0, 1, 5, 6, 10_000)] == [0.1, 0.2, 3.2, 5.0, 5.0]
