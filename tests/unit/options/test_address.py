from __future__ import annotations

import pytest

from penstock.options import ADDRESS, Endpoint, endpoint


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("127.0.0.1:4150", Endpoint("127.0.0.1", 4150), id="ipv4"),
        pytest.param("localhost:0", Endpoint("localhost", 0), id="name"),
        pytest.param("[::1]:4150", Endpoint("::1", 4150), id="ipv6"),
        pytest.param("[fe80::1%lo]:4150", Endpoint("fe80::1%lo", 4150), id="ipv6-with-a-zone"),
        pytest.param(":4150", Endpoint("", 4150), id="no-host"),
        pytest.param("0.0.0.0:4150", Endpoint("", 4150), id="all-of-ipv4-is-all-as-in-go"),
        pytest.param("[::]:4150", Endpoint("", 4150), id="all-of-ipv6-is-all-as-in-go"),
        pytest.param("127.0.0.1:", Endpoint("127.0.0.1", 0), id="no-port"),
        pytest.param("127.0.0.1:65535", Endpoint("127.0.0.1", 65535), id="the-last-port"),
        pytest.param("127.0.0.1:https", Endpoint("127.0.0.1", 443), id="a-service"),
        pytest.param("/run/nsqd.sock", Endpoint("", 0, "/run/nsqd.sock"), id="path"),
        pytest.param("nsqd.sock", Endpoint("", 0, "nsqd.sock"), id="relative-path"),
        pytest.param("./a:b", Endpoint("", 0, "./a:b"), id="path-with-a-colon"),
        pytest.param("/run/[1]/a:b:c", Endpoint("", 0, "/run/[1]/a:b:c"), id="path-with-anything"),
    ],
)
def test_an_address_is_a_host_and_a_port_or_a_path(text: str, expected: Endpoint) -> None:
    assert endpoint(text) == expected


@pytest.mark.parametrize("text", ["", "127.0.0.1", "4150", "::1", "a:b:c", "[::1]", "[::1:4150", "::1]:4150", "[a]b:1"])
def test_what_is_neither_is_refused_rather_than_made_a_socket_of_that_name(text: str) -> None:
    with pytest.raises(ValueError, match="neither host:port"):
        endpoint(text)


@pytest.mark.parametrize("text", ["a:65536", "a:-1", "a:no-such-service", "a:999999", "a:+1", "a:٣"])
def test_a_port_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no port"):
        endpoint(text)


def test_an_option_may_leave_an_address_empty_but_not_wrong() -> None:
    # given an option that holds an address, when it is empty, then that is its value
    assert ADDRESS.parse("") == ""
    # and when it is wrong, then it is refused before anything listens
    with pytest.raises(ValueError, match="is no port"):
        ADDRESS.parse("a:b")
