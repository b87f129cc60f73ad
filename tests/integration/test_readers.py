"""Readers over HTTP, as a Spark query and NSQ's tools meet them."""

from __future__ import annotations

import pytest

from tests.integration.daemon import Nsqd
from tests.integration.http_client import Http


def topic_of_three(web: Http, topic: str) -> None:
    web.post(f"/topic/create?topic={topic}")
    web.post(f"/mpub?topic={topic}", b"a\nb\nc")


def test_a_commit_makes_a_reader_and_moves_it_forward(web: Http) -> None:
    topic_of_three(web, "moves")
    for offset, expected in (
        (0, {"offset": 0}),
        (2, {"offset": 2}),
        (2, {"offset": 2}),
        (1, {"offset": 2, "message": "LOWER_THAN_BEFORE"}),
        (3, {"offset": 3}),
    ):
        answer = web.post(f"/reader/commit?topic=moves&reader=q&offset={offset}")
        assert (answer.status, answer.json()) == (200, expected)


def test_a_reader_stands_among_the_channels(web: Http, nsqd: Nsqd) -> None:
    # given a channel and a reader
    topic_of_three(web, "stats")
    web.post("/channel/create?topic=stats&channel=c")
    web.post("/reader/commit?topic=stats&reader=a-query&offset=1")
    # then both are shown, with the same keys, and how the reader lags is its depth
    [topic] = nsqd.stats("&topic=stats")["topics"]
    channel, reader = topic["channels"]
    assert [channel["channel_name"], reader["channel_name"]] == ["c", "a-query"]
    assert reader["depth"] == reader["backend_depth"] == 2
    assert (reader.pop("reader"), reader.pop("offset")) == (True, 1)
    assert reader.pop("renewed") >= topic["channels"][0]["client_count"]
    assert list(reader) == list(channel)
    assert {key: type(value) for key, value in reader.items()} == {key: type(value) for key, value in channel.items()}
    # and it is found by its name
    assert nsqd.channel("stats", "a-query")["depth"] == 2
    assert "[a-query                  ] depth: 2 " in web.get("/stats").body.decode()
    assert b'nsqd_reader_depth{topic="stats",reader="a-query"} 2\n' in web.get("/metrics").body


def test_a_paused_reader_is_told_no_new_end(web: Http) -> None:
    # given a query that looked
    topic_of_three(web, "paused")
    look = "/log?topic=paused&reader=q"
    assert web.get(look).json()["reader"] is None
    web.post("/reader/commit?topic=paused&reader=q&offset=1")
    assert web.get(look).json()["committed"] == 3
    # when somebody pauses it, as he would a channel
    assert web.post("/channel/pause?topic=paused&channel=q").status == 200
    web.post("/pub?topic=paused", b"d")
    # then its next look finds nothing new, and everybody else's does
    found = web.get(look).json()
    assert (found["committed"], found["segments"][-1]["end"]) == (3, 3)
    assert found["reader"] == {"offset": 1, "paused": True}
    assert web.get("/log?topic=paused").json()["committed"] == 4
    assert web.get("/log?topic=paused&reader=other").json()["committed"] == 4
    # until it goes on
    web.post("/channel/unpause?topic=paused&channel=q")
    assert web.get(look).json()["committed"] == 4


def test_readers_survive_a_kill(tmp_path_factory: pytest.TempPathFactory) -> None:
    nsqd = Nsqd(tmp_path_factory.mktemp("killed"))
    web = Http(nsqd.http)
    topic_of_three(web, "t")
    web.post("/reader/commit?topic=t&reader=q&offset=2")
    web.post("/channel/pause?topic=t&channel=q")
    web.close()
    nsqd.kill()
    nsqd.start()
    web = Http(nsqd.http)
    assert web.get("/log?topic=t&reader=q").json()["reader"] == {"offset": 2, "paused": True}
    web.close()
    assert nsqd.stop() == 0


def test_a_reader_is_no_channel(web: Http, nsqd: Nsqd) -> None:
    topic_of_three(web, "names")
    web.post("/reader/commit?topic=names&reader=q&offset=1")
    # nobody subscribes to it,
    with nsqd.client() as client:
        assert client.ask("SUB names q") == b"E_SUB_FAILED SUB failed names:q is a reader"
    # and what is meant for channels alone says so
    for route in ("create", "empty"):
        answer = web.post(f"/channel/{route}?topic=names&channel=q")
        assert (answer.status, answer.message) == (409, "IS_A_READER")
    # nor does R go on for it
    assert web.get("/log?topic=names").json()["routed"] == 0
    # and no channel becomes one
    web.post("/channel/create?topic=names&channel=c")
    answer = web.post("/reader/commit?topic=names&reader=c&offset=1")
    assert (answer.status, answer.message) == (409, "IS_A_CHANNEL")


@pytest.mark.parametrize("route", ["/reader/delete?topic=gone&reader=q", "/channel/delete?topic=gone&channel=q"])
def test_a_reader_is_deleted_by_its_route_and_as_a_channel(web: Http, nsqd: Nsqd, route: str) -> None:
    topic_of_three(web, "gone")
    web.post("/reader/commit?topic=gone&reader=q&offset=1")
    assert web.post(route).status == 200
    assert nsqd.stats("&topic=gone")["topics"][0]["channels"] == []
    assert web.post(route).status == 404
    # and its name is free again
    assert web.post("/channel/create?topic=gone&channel=q").status == 200
    assert web.post("/channel/delete?topic=gone&channel=q").status == 200


def test_a_topic_that_was_made_again_has_none_of_the_readers_before(web: Http) -> None:
    topic_of_three(web, "again")
    known = web.get("/log?topic=again").json()["incarnation"]
    commit = f"/reader/commit?topic=again&reader=q&offset=1&incarnation={known}"
    assert web.post(commit).status == 200
    web.post("/topic/delete?topic=again")
    topic_of_three(web, "again")
    answer = web.post(commit)
    assert (answer.status, answer.message) == (409, "OTHER_INCARNATION")
    assert answer.json()["incarnation"] == web.get("/log?topic=again").json()["incarnation"] != known
    assert web.get("/log?topic=again&reader=q").json()["reader"] is None


@pytest.mark.parametrize(
    ("target", "status", "message"),
    [
        pytest.param("commit?reader=q&offset=0", 400, "MISSING_ARG_TOPIC", id="no-topic"),
        pytest.param("commit?topic=$&reader=q&offset=0", 400, "INVALID_TOPIC", id="bad-topic"),
        pytest.param("commit?topic=nope&reader=q&offset=0", 404, "TOPIC_NOT_FOUND", id="unknown-topic"),
        pytest.param("commit?topic=wrong&offset=0", 400, "MISSING_ARG_READER", id="no-reader"),
        pytest.param("commit?topic=wrong&reader=%24&offset=0", 400, "INVALID_ARG_READER", id="bad-reader"),
        pytest.param("commit?topic=wrong&reader=q%23ephemeral&offset=0", 400, "INVALID_ARG_READER", id="ephemeral"),
        pytest.param("commit?topic=wrong&reader=q", 400, "MISSING_ARG_OFFSET", id="no-offset"),
        pytest.param("commit?topic=wrong&reader=q&offset=-1", 400, "INVALID_ARG_OFFSET", id="bad-offset"),
        pytest.param("commit?topic=wrong&reader=q&offset=4", 416, "BEYOND_THE_END", id="beyond-the-end"),
        pytest.param("delete?topic=wrong", 400, "MISSING_ARG_READER", id="delete-none"),
        pytest.param("delete?topic=wrong&reader=q", 404, "READER_NOT_FOUND", id="delete-unknown"),
    ],
)
def test_what_is_refused(web: Http, target: str, status: int, message: str) -> None:
    if web.get("/log?topic=wrong").status == 404:
        topic_of_three(web, "wrong")
    answer = web.post(f"/reader/{target}")
    assert (answer.status, answer.message) == (status, message)
    assert web.get(f"/reader/{target}").status == 405
    assert web.get("/log?topic=wrong&reader=q").json()["reader"] is None
