"""What nsqlookupd say, and what several of them say together."""

from __future__ import annotations

import json

import pytest

from penstock.client.address import Address
from penstock.client.lookup import Node, Together, lookup_target, read_lookup, read_nodes
from penstock.errors import LookupFailed

A, B = Address("a", 1), Address("b", 2)
LOOKUPS = Address("l", 1), Address("m", 1)


def producer(address: Address, **more: object) -> dict[str, object]:
    return {"broadcast_address": address.host, "tcp_port": address.port, "hostname": "h", **more}


def node(address: Address, *topics: str) -> Node:
    return Node(address, frozenset(topics))


def test_a_lookup_names_the_nsqd_that_have_the_topic() -> None:
    body = json.dumps({"channels": [], "producers": [producer(A), producer(B)]}).encode()
    found = read_lookup(200, body, b"5-17", "t")
    assert found.nodes == {node(A, "t"), node(B, "t")}
    assert found.revision == "5-17"


def test_a_topic_that_is_not_known_has_no_nsqd() -> None:
    assert read_lookup(404, b'{"message":"TOPIC_NOT_FOUND"}', b"", "t").nodes == frozenset()


def test_an_old_nsqlookupd_wraps_its_answer() -> None:
    body = json.dumps({"status_code": 200, "data": {"producers": [producer(A)]}}).encode()
    assert read_lookup(200, body, b"", "t").nodes == {node(A, "t")}


def test_nodes_come_with_the_topics_that_are_not_tombstoned() -> None:
    body = json.dumps(
        {"producers": [producer(A, topics=["s", "t"], tombstones=[True, False]), producer(B, topics=None)]}
    ).encode()
    assert read_nodes(200, body).nodes == {node(A, "t"), node(B)}


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, b"{}"),
        (404, b"nothing here"),
        (200, b"no json"),
        (200, b"{}"),
        (200, b"[]"),
        (200, b'{"producers":[{}]}'),
        (200, b'{"producers":[{"broadcast_address":"a","tcp_port":"x"}]}'),
    ],
)
def test_what_no_nsqlookupd_answers_is_an_error(status: int, body: bytes) -> None:
    with pytest.raises(LookupFailed):
        read_lookup(status, body, b"", "t")


def test_only_with_a_revision_an_answer_is_waited_for() -> None:
    assert lookup_target("t#ephemeral", "") == "/lookup?topic=t%23ephemeral"
    assert lookup_target("t", "5-17") == "/lookup?topic=t&wait=30s&since=5-17"


def test_several_are_joined_and_one_that_is_silent_takes_nothing_away() -> None:
    together = Together()
    assert together.told(LOOKUPS[0], frozenset({node(A, "t")}))
    assert together.told(LOOKUPS[1], frozenset({node(A, "t"), node(B, "s")}))
    assert together.addresses == {A, B}
    assert together.having("t") == {A}
    # when one says the same again, nothing is different; when it says less, that counts
    assert not together.told(LOOKUPS[0], frozenset({node(A, "t")}))
    assert together.told(LOOKUPS[1], frozenset())
    assert together.addresses == {A}
