"""The beginning of a conversation, step by step, without a socket."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import pytest

from penstock.client.handshake import (
    NOTHING,
    Agreement,
    Ask,
    Compress,
    Compression,
    Secure,
    Step,
    Subscribed,
    Wishes,
    handshake,
)
from penstock.errors import HandshakeFailed


def begun(
    wishes: Wishes, answer: dict[str, Any], subscribe: Subscribed = None
) -> tuple[Step | Agreement, Generator[Step, bytes, Agreement]]:
    """What follows the answer to IDENTIFY."""
    steps = handshake(wishes, subscribe)
    next(steps)
    return then(steps, json.dumps(answer).encode()), steps


def then(steps: Generator[Step, bytes, Agreement], answer: bytes) -> Step | Agreement:
    try:
        return steps.send(answer)
    except StopIteration as end:
        agreement: Agreement = end.value
        return agreement


def asked(wishes: Wishes) -> dict[str, Any]:
    """What IDENTIFY says."""
    step = next(handshake(wishes))
    assert isinstance(step, Ask)
    head, _, body = step.data.partition(b"\n")
    assert head == b"  V2IDENTIFY"
    found = json.loads(body[4:])
    assert isinstance(found, dict)
    return found


def test_identify_says_what_is_wished() -> None:
    said = asked(Wishes(client_id="me", msg_timeout=2.5, compression="deflate", tls=True))
    assert said["client_id"] == "me"
    assert said["msg_timeout"] == 2500
    assert said["heartbeat_interval"] == 15_000
    assert said["feature_negotiation"]
    assert said["deflate"]
    assert said["tls_v1"]


def test_what_nobody_wishes_is_left_to_the_nsqd() -> None:
    assert "msg_timeout" not in asked(Wishes())
    assert asked(Wishes(heartbeat_interval=None))["heartbeat_interval"] == -1


def test_a_plain_conversation_is_identify_and_sub() -> None:
    # given an nsqd that says how it is
    step, steps = begun(Wishes(), {"max_rdy_count": 7, "msg_timeout": 1000, "max_msg_timeout": 2000}, ("t", "c"))
    # then the channel is asked for, and that is all
    assert step == Ask(b"SUB t c\n")
    assert then(steps, b"OK") == Agreement(7, 1.0, 2.0, "")


@pytest.mark.parametrize("compression", ["snappy", "deflate"])
def test_tls_comes_before_compression_and_both_before_the_secret(compression: Compression) -> None:
    answer = {"tls_v1": True, compression: True, "deflate_level": 3, "auth_required": True}
    step, steps = begun(Wishes(tls=True, compression=compression, secret=b"s"), answer)
    assert step == Secure()
    assert then(steps, b"") == Ask(NOTHING)
    step = then(steps, b"OK")
    assert isinstance(step, Compress)
    assert type(step.layer).__name__.lower() == compression
    assert then(steps, b"") == Ask(NOTHING)
    assert then(steps, b"OK") == Ask(b"AUTH\n\0\0\0\x01s")
    assert isinstance(then(steps, b"{}"), Agreement)


@pytest.mark.parametrize(
    ("wishes", "answer", "why"),
    [
        pytest.param(Wishes(tls=True), {}, "does not offer TLS", id="no-tls"),
        pytest.param(Wishes(), {"auth_required": True}, "asks for a secret", id="no-secret"),
    ],
)
def test_what_cannot_be_agreed_on_ends_it(wishes: Wishes, answer: dict[str, Any], why: str) -> None:
    with pytest.raises(HandshakeFailed, match=why):
        begun(wishes, answer)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400", b"[]", b""])
def test_what_is_no_nsqd_is_told_by_its_answer(answer: bytes) -> None:
    steps = handshake(Wishes())
    next(steps)
    with pytest.raises(HandshakeFailed, match="no nsqd"):
        steps.send(answer)


def test_an_nsqd_that_negotiates_nothing_has_the_usual_limits() -> None:
    steps = handshake(Wishes())
    next(steps)
    assert then(steps, b"OK") == Agreement(2500, 60.0, 900.0, "")


def test_a_sub_that_is_not_ok_ends_it() -> None:
    _, steps = begun(Wishes(), {}, ("t", "c"))
    with pytest.raises(HandshakeFailed, match="SUB"):
        steps.send(b"what")
