from __future__ import annotations

import pytest

from penstock.errors import HttpError
from penstock.http import Request, Response, always

ROUTE = always(Response())


def request(path: bytes = b"/pub", query: bytes = b"", peer: object = None) -> Request:
    return Request(b"POST", path, query, {}, ROUTE, peer)


def test_the_first_of_several_values_is_the_argument() -> None:
    # given a query that names a topic twice
    asked = request(query=b"topic=a&topic=b")
    # then the first one counts, as in NSQ, and what is not there is None
    assert asked.arg("topic") == "a"
    assert asked.arg("channel") is None


def test_a_query_that_is_none_is_answered_in_nsq_s_word() -> None:
    with pytest.raises(HttpError, match=r"^INVALID_REQUEST$") as caught:
        request(query=b"topic=%zz").arg("topic")
    assert caught.value.status == 400


def test_a_request_that_comes_again_has_its_own_body_and_the_same_words() -> None:
    # given a request whose query was read
    first = request(query=b"topic=a")
    assert first.arg("topic") == "a"
    # when it comes again
    again = first.again(b"body")
    # then only the body is another
    assert (again.method, again.path, again.query, again.route, again.body) == (
        b"POST", b"/pub", b"topic=a", ROUTE, b"body",
    )  # fmt: skip
    assert again.args is first.args
    assert first.body == b""


@pytest.mark.parametrize(
    ("path", "name"),
    [
        pytest.param(b"/config/log_level", "log_level", id="plain"),
        pytest.param(b"/config/log%5Flevel", "log_level", id="escaped"),
        pytest.param(b"/config/%ff", "\udcff", id="no-utf-8"),
    ],
)
def test_the_name_is_what_stands_last_in_the_path(path: bytes, name: str) -> None:
    assert request(path).name == name


@pytest.mark.parametrize(
    ("peer", "expected"),
    [
        pytest.param(("127.0.0.1", 5555), "127.0.0.1:5555", id="ipv4"),
        pytest.param(("::1", 5555, 0, 0), "[::1]:5555", id="ipv6"),
        pytest.param("", "@", id="unix"),
        pytest.param(None, "@", id="unknown"),
    ],
)
def test_an_address_is_written_as_go_writes_it(peer: object, expected: str) -> None:
    assert request(peer=peer).remote == expected


def test_the_target_is_path_and_query_as_they_came() -> None:
    assert request(b"/p%69ng").target == "/p%69ng"
    assert request(b"/pub", b"topic=%23").target == "/pub?topic=%23"
