"""Channels that begin in the past or go back to it, over HTTP, with consumers that know nothing of it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.integration.daemon import Nsqd
from tests.integration.http_client import Http


def topic_of_three(web: Http, topic: str) -> None:
    web.post(f"/topic/create?topic={topic}")
    web.post(f"/channel/create?topic={topic}&channel=first")
    for body in (b"a", b"b", b"c"):
        web.post(f"/pub?topic={topic}", body)


def times(web: Http, topic: str) -> tuple[int, int]:
    """When its log was appended to first and last, in ns."""
    [segment] = web.get(f"/log?topic={topic}").json()["segments"]
    return segment["first_time"], segment["last_time"]


def rfc3339(ns: int) -> str:
    seconds = datetime.fromtimestamp(ns // 10**9, UTC)
    return f"{seconds:%Y-%m-%dT%H:%M:%S}.{ns % 10**9:09}Z"


def test_a_consumer_gets_it_all_again(web: Http, nsqd: Nsqd) -> None:
    # given a consumer that has three messages
    topic_of_three(web, "again")
    with nsqd.client() as client:
        client.subscribe("again", "first", 3)
        had = [client.message() for _ in range(3)]
        # when its channel is rewound
        answer = web.post("/channel/rewind?topic=again&channel=first&to=1")
        assert (answer.status, answer.json()) == (200, {"offset": 1})
        # then it gets what stands from there on, as for the first time
        anew = [client.message() for _ in range(2)]
        assert [(each.body, each.attempts) for each in anew] == [(b"b", 1), (b"c", 1)]
        # and what it says of a message that is not its own any more is refused, and ends nothing
        client.finish(had[0])
        assert client.answer().startswith(b"E_FIN_FAILED")
        for message in anew:
            client.finish(message)
        web.post("/pub?topic=again", b"d")
        assert client.message().body == b"d"


def test_a_new_channel_gets_what_is_retained(web: Http, nsqd: Nsqd) -> None:
    # given a topic of which every message is finished
    topic_of_three(web, "retained")
    with nsqd.client() as client:
        client.subscribe("retained", "first", 3)
        for _ in range(3):
            client.finish(client.message())
    # when somebody makes a channel that begins with what is retained, then he gets it
    answer = web.post("/channel/create?topic=retained&channel=all&from=earliest")
    assert (answer.status, answer.json()) == (200, {"offset": 0})
    assert nsqd.channel("retained", "all")["depth"] == nsqd.channel("retained", "all")["message_count"] == 3
    with nsqd.client() as client:
        client.subscribe("retained", "all", 3)
        assert [client.message().body for _ in range(3)] == [b"a", b"b", b"c"]
    # and where it is there, it stays where it is
    answer = web.post("/channel/create?topic=retained&channel=all&from=earliest")
    assert (answer.status, answer.json()) == (200, {"offset": 3, "message": "CHANNEL_EXISTS"})
    # and without `from` it answers as NSQ
    assert web.post("/channel/create?topic=retained&channel=other").body == b""


def test_the_places_that_there_are(web: Http) -> None:
    topic_of_three(web, "places")
    first, last = times(web, "places")
    for to, offset in (
        ("earliest", 0),
        ("latest", 3),
        ("2", 2),
        ("3", 3),
        ("-15m", 0),
        ("-0s", 3),
        ("1970-01-01T00:00:00Z", 0),
        ("-876000h", 0),
        (rfc3339(first), 0),
        (rfc3339(last), 2),
        (rfc3339(last).lower(), 2),
        (rfc3339(last)[:-1] + "+00:00", 2),  # whose plus the query makes a space
        (rfc3339(last)[:-1] + "%2B00:00", 2),
        ("2100-01-01T00:00:00-08:00", 3),
    ):
        assert web.post(f"/channel/rewind?topic=places&channel=first&to={to}").json() == {"offset": offset}, to


def test_what_is_deferred_comes_to_who_goes_back(web: Http, nsqd: Nsqd) -> None:
    # given a message that was deferred before a channel was made, and is due
    topic_of_three(web, "deferred")
    web.post("/pub?topic=deferred&defer=1", b"d")
    with nsqd.client() as client:
        client.subscribe("deferred", "first", 4)
        assert b"d" in [client.message().body for _ in range(4)]
    # then a channel that begins in the past has it
    web.post("/channel/create?topic=deferred&channel=all&from=earliest")
    with nsqd.client() as client:
        client.subscribe("deferred", "all", 4)
        assert [client.message().body for _ in range(4)] == [b"a", b"b", b"c", b"d"]


def test_what_was_rewound_outlives_a_kill(tmp_path: Path) -> None:
    nsqd = Nsqd(tmp_path)
    web = Http(nsqd.http)
    topic_of_three(web, "t")
    web.post("/channel/rewind?topic=t&channel=first&to=latest")
    web.post("/channel/create?topic=t&channel=all&from=earliest")
    web.post("/channel/create?topic=t&channel=some&from=2")
    web.close()
    nsqd.kill()
    nsqd.start()
    assert [nsqd.channel("t", name)["depth"] for name in ("first", "all", "some")] == [0, 3, 1]
    assert nsqd.stop() == 0


def test_what_is_not_kept_is_not_gone_back_to(tmp_path: Path) -> None:
    # given a topic that retains nothing and has let go of what is consumed
    nsqd = Nsqd(tmp_path, "--retention-bytes=0", "--max-bytes-per-file=2000", "--sync-timeout=10ms")
    web = Http(nsqd.http)
    web.post("/topic/create?topic=t")
    web.post("/channel/create?topic=t&channel=c")
    with nsqd.client() as client:
        client.subscribe("t", "c", 100)
        earliest = 0
        while not earliest:
            web.post("/pub?topic=t", b"x" * 1000)
            client.finish(client.message())
            earliest = web.get("/log?topic=t").json()["earliest"]
        # then its beginning is named to who wants more
        answer = web.post("/channel/rewind?topic=t&channel=c&to=0")
        assert (answer.status, answer.message) == (416, "NOT_RETAINED")
        assert answer.json()["earliest"] >= earliest
        answer = web.post("/channel/create?topic=t&channel=all&from=0")
        assert (answer.status, answer.message) == (416, "NOT_RETAINED")
        # and times are as good as what is kept
        assert web.post("/channel/rewind?topic=t&channel=c&to=-1h").json()["offset"] >= earliest
    web.close()
    assert nsqd.stop() == 0


@pytest.mark.parametrize(
    ("target", "status", "message"),
    [
        pytest.param("rewind?channel=first&to=0", 400, "MISSING_ARG_TOPIC", id="no-topic"),
        pytest.param("rewind?topic=$&channel=first&to=0", 400, "INVALID_ARG_TOPIC", id="bad-topic"),
        pytest.param("rewind?topic=nope&channel=first&to=0", 404, "TOPIC_NOT_FOUND", id="unknown-topic"),
        pytest.param("rewind?topic=wrong&to=0", 400, "MISSING_ARG_CHANNEL", id="no-channel"),
        pytest.param("rewind?topic=wrong&channel=$&to=0", 400, "INVALID_ARG_CHANNEL", id="bad-channel"),
        pytest.param("rewind?topic=wrong&channel=c&to=0", 404, "CHANNEL_NOT_FOUND", id="unknown-channel"),
        pytest.param("rewind?topic=wrong&channel=reader&to=0", 409, "IS_A_READER", id="a-reader"),
        pytest.param("rewind?topic=wrong&channel=first", 400, "MISSING_ARG_TO", id="to-nowhere"),
        *(
            pytest.param(f"rewind?topic=wrong&channel=first&to={to}", 400, "INVALID_ARG_TO", id=f"to-{to or 'nothing'}")
            for to in (
                "", "EARLIEST", "-1", "-15", "15m", "9223372036854775808", "2026-01-02", "2026-01-02T03:04:05", "-1y",
                "2026-13-02T03:04:05Z", "-99999999h", "%ff",
            )
        ),
        pytest.param("rewind?topic=wrong&channel=first&to=4", 416, "BEYOND_THE_END", id="beyond-the-end"),
        pytest.param("create?topic=wrong&channel=c&from=4", 416, "BEYOND_THE_END", id="from-beyond-the-end"),
        pytest.param("create?topic=wrong&channel=c&from=x", 400, "INVALID_ARG_FROM", id="from-nowhere"),
        pytest.param("create?topic=wrong&channel=reader&from=0", 409, "IS_A_READER", id="from-a-reader"),
        pytest.param("create?topic=nope&channel=c&from=0", 404, "TOPIC_NOT_FOUND", id="from-of-no-topic"),
    ],
)  # fmt: skip
def test_what_is_refused(web: Http, target: str, status: int, message: str) -> None:
    if web.get("/log?topic=wrong").status == 404:
        topic_of_three(web, "wrong")
        web.post("/reader/commit?topic=wrong&reader=reader&offset=0")
    before = web.get("/stats?format=json&topic=wrong").json()["topics"]
    answer = web.post(f"/channel/{target}")
    assert (answer.status, answer.message) == (status, message)
    assert web.get(f"/channel/{target}").status == 405
    assert web.get("/stats?format=json&topic=wrong").json()["topics"] == before
