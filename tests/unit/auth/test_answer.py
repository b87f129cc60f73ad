"""What an auth server is asked, and what its answers mean: as nsqd reads them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.auth.answer import query, read
from penstock.auth.permissions import Who
from penstock.errors import AuthServerError

WHO = Who(b"s&cret", "10.0.0.1", tls=True, common_name="shop")
S = 10**9


def answer(*authorizations: object, **more: object) -> bytes:
    return json.dumps({"ttl": 10, "authorizations": authorizations, **more}).encode()


def allowing(topic: str, channels: object = (".*",), permissions: object = ("publish", "subscribe")) -> dict[str, Any]:
    return {"topic": topic, "channels": channels, "permissions": permissions}


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("10.0.0.9:80", "http://10.0.0.9:80/auth?common_name=shop&remote_ip=10.0.0.1&secret=s%26cret&tls=true"),
        ("https://auth/x", "https://auth/x?common_name=shop&remote_ip=10.0.0.1&secret=s%26cret&tls=true"),
    ],
)
def test_a_server_is_asked_by_its_address_or_a_url(address: str, url: str) -> None:
    asked = query(address, "get", WHO)
    assert (asked.url, asked.body) == (url, None)
    assert asked.headers == {"Accept": "application/vnd.nsq; version=1.0"}


def test_a_post_says_it_in_lists() -> None:
    asked = query("10.0.0.9:80", "post", Who(b"secret", "10.0.0.1"))
    assert asked.url == "http://10.0.0.9:80/auth"
    assert json.loads(asked.body or b"") == {
        "common_name": [""], "remote_ip": ["10.0.0.1"], "secret": ["secret"], "tls": ["false"],
    }  # fmt: skip


def test_a_secret_is_in_no_text() -> None:
    assert "cret" not in f"{WHO} {WHO!r}"


@pytest.mark.parametrize(
    ("authorization", "topic", "channel", "allowed"),
    [
        pytest.param(allowing("orders"), "orders", "", True, id="publish"),
        pytest.param(allowing("orders"), "orders", "shop", True, id="subscribe"),
        pytest.param(allowing("orders"), "my-orders", "", True, id="found-anywhere-in-the-name"),
        pytest.param(allowing("^orders$"), "my-orders", "", False, id="unless-it-says-so"),
        pytest.param(allowing("^orders", ["^shop$"]), "orders", "shop", True, id="a-channel"),
        pytest.param(allowing("^orders", ["^shop$"]), "orders", "bill", False, id="another-channel"),
        pytest.param(allowing("orders", ["^shop$"]), "orders", "", False, id="publishing-needs-a-channel-too"),
        pytest.param(allowing("orders", []), "orders", "shop", False, id="no-channel"),
        pytest.param(allowing("orders", [".*"], ["publish"]), "orders", "shop", False, id="publish-only"),
        pytest.param(allowing("orders", [".*"], ["subscribe"]), "orders", "", False, id="subscribe-only"),
        pytest.param(allowing(""), "anything", "any", True, id="no-pattern-is-any"),
    ],
)
def test_what_is_allowed_stands_in_the_answer(
    authorization: dict[str, Any], topic: str, channel: str, allowed: bool
) -> None:
    # given an answer, and one that says no more than it
    found = read(answer(authorization), 0)
    # then it is the same each time it is asked
    assert [found.allow(topic, channel) for _ in range(2)] == [allowed, allowed]
    assert found.count == 1


def test_an_answer_holds_for_its_time() -> None:
    # given an answer of 10 seconds, read at second 5
    found = read(answer(identity="shop", identity_url="http://shop"), 5 * S)
    # then it holds until second 15
    assert (found.hold(15 * S), found.hold(15 * S + 1)) == (True, False)
    assert (found.identity, found.identity_url, found.count) == ("shop", "http://shop", 0)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        pytest.param(b"", "no JSON", id="nothing"),
        pytest.param(b"[" * 100_000, "no JSON", id="brackets"),
        pytest.param(b"[]", "the answer is no object", id="a-list"),
        pytest.param(b"{}", "invalid TTL 0", id="no-ttl"),
        pytest.param(answer(ttl=-1), "invalid TTL -1", id="negative"),
        pytest.param(answer(ttl="10"), "ttl of the answer is of another type", id="a-ttl-in-words"),
        pytest.param(answer(ttl=True), "ttl of the answer is of another type", id="a-true-ttl"),
        pytest.param(answer(1), "an authorization is no object", id="a-number"),
        pytest.param(answer(allowing("a", permissions=["admin"])), "unknown permission admin", id="permission"),
        pytest.param(answer(allowing("(")), r"unable to compile topic '\('", id="topic"),
        pytest.param(answer(allowing("a", ["["])), r"unable to compile channel '\['", id="channel"),
        pytest.param(answer(allowing("a", [1])), "channels of an authorization are not texts", id="numbers"),
        pytest.param(answer(allowing("a", "b")), "channels of an authorization is of another type", id="one-channel"),
    ],
)
def test_what_is_no_answer_is_refused(body: bytes, why: str) -> None:
    with pytest.raises(AuthServerError, match=why):
        read(body, 0)


KEYS = st.sampled_from(["ttl", "authorizations", "topic", "channels", "permissions"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner),
)


@given(body=st.binary() | VALUES.map(lambda value: json.dumps(value).encode()))
def test_random_answers_are_read_or_refused(body: bytes) -> None:
    try:
        read(body, 0).allow("topic", "channel")
    except AuthServerError:
        return
