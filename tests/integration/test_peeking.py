"""A look into a channel over HTTP: each state, whatever the body, and nothing is consumed."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.integration.daemon import Nsqd
from tests.integration.http_client import Http

KEYS = ["state", "timestamp", "age_ms", "offset", "id", "attempts", "bytes", "body"]


def publish(web: Http, topic: str, *bodies: bytes) -> None:
    """Where a channel waits for them."""
    web.post(f"/topic/create?topic={topic}")
    web.post(f"/channel/create?topic={topic}&channel=c")
    for body in bodies:
        assert web.post(f"/pub?topic={topic}", body).status == 200


def peek(web: Http, topic: str, query: str = "", channel: str = "c") -> list[dict[str, Any]]:
    answer = web.get(f"/channel/peek?topic={topic}&channel={channel}{query}")
    assert answer.status == 200, answer.body
    found = answer.json()
    assert (found["topic"], found["channel"]) == (topic.replace("%23", "#"), channel.replace("%23", "#"))
    return list(found["messages"])


@pytest.mark.parametrize("topic", ["states", "states%23ephemeral"])
def test_each_state_is_shown_and_nothing_is_consumed(web: Http, nsqd: Nsqd, topic: str) -> None:
    # given a channel of which a consumer has one message, gave back two, one of them with a delay, and took no more
    publish(web, topic, b"a", b"b", b"c", b"d", b"e")
    web.post(f"/pub?topic={topic}&defer=55000", b"f")
    name = topic.replace("%23", "#")
    with nsqd.client() as client:
        client.subscribe(name, "c", 3)
        had = [client.message() for _ in range(3)]
        client.send(b"RDY 0\nREQ %b 0\nREQ %b 45000\n" % (had[1].id, had[2].id))
        assert client.ask("PUB other", b"x") == b"OK"
        # when somebody looks
        found = peek(web, topic)
        # then all are there, each once, and in its state
        assert [(each["state"], each["body"]) for each in found] == [
            ("next", "d"), ("next", "e"), ("ready", "b"), ("in_flight", "a"), ("delayed", "c"), ("deferred", "f"),
        ]  # fmt: skip
        assert [each.get("offset") for each in found] == [3, 4, 1, 0, 2, None]
        assert [each.get("attempts") for each in found] == [0, 0, 1, 1, 1, None]
        assert list(found[0]) == KEYS
        in_flight = found[3]
        assert (in_flight["id"], in_flight["timestamp"]) == (had[0].id.decode(), had[0].timestamp)
        assert 0 <= in_flight["age_ms"] < 30_000
        assert [each["due_ms"] // 10_000 for each in found[3:]] == [5, 4, 5]
        # and looking changes nothing
        assert [each["state"] for each in peek(web, topic)] == [each["state"] for each in found]
        client.finish(had[0])
        client.send(b"RDY 5\n")
        assert sorted(client.message().body for _ in range(3)) == [b"b", b"d", b"e"]


def test_one_state_and_so_many(web: Http) -> None:
    publish(web, "some", b"a", b"b", b"c")
    assert [each["body"] for each in peek(web, "some", "&state=next&n=2")] == ["a", "b"]
    assert peek(web, "some", "&state=in_flight") == []
    web.post("/mpub?topic=some", b"\n".join(b"%d" % number for number in range(200)))
    assert [each["offset"] for each in peek(web, "some", "&state=next&n=100")] == list(range(100))
    assert len(peek(web, "some")) == 10


@pytest.mark.parametrize(
    ("body", "key", "expected"),
    [
        pytest.param("na\u00efve".encode(), "body", "na\u00efve", id="text"),
        pytest.param(b"\xff\x00", "body_base64", base64.b64encode(b"\xff\x00").decode(), id="bytes"),
        pytest.param(b"x" * 300, "body", "x" * 256, id="long"),
        pytest.param(b"x" * 255 + "\u00ef".encode() * 2, "body", "x" * 255, id="cut-in-a-character"),
        pytest.param(b"x\xc3", "body_base64", base64.b64encode(b"x\xc3").decode(), id="half-a-character"),
        pytest.param(b"\xff" * 300, "body_base64", base64.b64encode(b"\xff" * 256).decode(), id="long-bytes"),
    ],
)
def test_a_body_is_shown_as_what_it_is(web: Http, body: bytes, key: str, expected: str) -> None:
    publish(web, "bodies", body)
    found = peek(web, "bodies")[-1]
    assert (found["bytes"], found[key]) == (len(body), expected)
    web.post("/channel/empty?topic=bodies&channel=c")


def test_what_is_not_for_the_channel_is_not_shown(web: Http, nsqd: Nsqd) -> None:
    # given what was emptied, and what was deferred before a channel was made, due and not due
    publish(web, "others", b"a")
    for delay in (1, 60_000):
        web.post(f"/pub?topic=others&defer={delay}", b"b")
    web.post("/channel/create?topic=others&channel=late")
    publish(web, "others", b"c")
    with nsqd.client() as client:
        client.subscribe("others", "c", 5)
        assert {client.message().body for _ in range(3)} == {b"a", b"b", b"c"}
    # then the channel that was made later has none of it
    assert [each["body"] for each in peek(web, "others", channel="late")] == ["c"]


def test_messages_held_for_their_stragglers_are_shown(tmp_path_factory: pytest.TempPathFactory) -> None:
    # given a topic that retains nothing, and a message that is not finished while all behind it are
    flags = ("--retention-bytes=0", "--max-bytes-per-file=20000", "--sync-timeout=10ms")
    nsqd = Nsqd(tmp_path_factory.mktemp("held"), *flags)
    web = Http(nsqd.http)
    publish(web, "held", b"straggler")
    with nsqd.client() as client:
        client.subscribe("held", "c", 2)
        client.message()
        while not web.get("/log?topic=held").json()["earliest"]:
            web.post("/pub?topic=held", b"x" * 1000)
            client.finish(client.message())
        # when its segment is gone, then it is still shown
        assert [each["body"] for each in peek(web, "held", "&state=in_flight")] == ["straggler"]
    web.close()
    assert nsqd.stop() == 0


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        pytest.param("channel=c", 400, "MISSING_ARG_TOPIC", id="no-topic"),
        pytest.param("topic=$&channel=c", 400, "INVALID_ARG_TOPIC", id="bad-topic"),
        pytest.param("topic=nope&channel=c", 404, "TOPIC_NOT_FOUND", id="unknown-topic"),
        pytest.param("topic=wrong", 400, "MISSING_ARG_CHANNEL", id="no-channel"),
        pytest.param("topic=wrong&channel=nope", 404, "CHANNEL_NOT_FOUND", id="unknown-channel"),
        pytest.param("topic=wrong&channel=q", 409, "IS_A_READER", id="a-reader"),
        pytest.param("topic=wrong&channel=c&state=x", 400, "INVALID_ARG_STATE", id="bad-state"),
        *(
            pytest.param(f"topic=wrong&channel=c&n={n}", 400, "INVALID_ARG_N", id=f"n-{n or 'nothing'}")
            for n in ("", "0", "101", "-1", "x")
        ),
    ],
)
def test_what_is_refused(web: Http, query: str, status: int, message: str) -> None:
    publish(web, "wrong")
    web.post("/reader/commit?topic=wrong&reader=q&offset=0")
    answer = web.get(f"/channel/peek?{query}")
    assert (answer.status, answer.message) == (status, message)
    assert web.post(f"/channel/peek?{query}").status == 405
