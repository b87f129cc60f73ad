"""Publishing once, and later, over HTTP: as a Spark sink does it, or whoever numbers his batches."""

from __future__ import annotations

import struct
import time
from pathlib import Path

import pytest

from penstock.protocol.batch import records
from tests.integration.daemon import Nsqd
from tests.integration.http_client import Answer, Http

HOUR = 3600 * 10**9


def binary(*bodies: bytes) -> bytes:
    return struct.pack(">i", len(bodies)) + b"".join(struct.pack(">i", len(body)) + body for body in bodies)


def once(web: Http, topic: str, sequence: int, *bodies: bytes, digest: str = "d0", more: str = "") -> Answer:
    key = f"producer=loader-1&sequence={sequence}&digest={digest}"
    return web.post(f"/mpub?topic={topic}&binary=true&{key}{more}", binary(*bodies))


def content(web: Http, topic: str) -> list[bytes]:
    return [record.body for record in records(web.get(f"/log/read?topic={topic}&offset=0").body)]


def test_a_batch_that_is_sent_again_is_there_once(web: Http) -> None:
    first, again = (once(web, "again", 7, b"a", b"b") for _ in range(2))
    assert (first.status, first.body, first.headers.get("x-penstock-sequence")) == (200, b"OK", None)
    assert (again.status, again.body, again.headers["x-penstock-sequence"]) == (200, b"OK", "7")
    assert again.headers["x-nsq-content-type"] == first.headers["x-nsq-content-type"]
    # and so is one below the last
    assert once(web, "again", 9, b"c").headers.get("x-penstock-sequence") is None
    assert once(web, "again", 7, b"a", b"b").headers["x-penstock-sequence"] == "9"
    assert content(web, "again") == [b"a", b"b", b"c"]


def test_another_batch_under_the_same_key_is_refused(web: Http) -> None:
    once(web, "other", 7, b"a", digest="d0")
    refused = once(web, "other", 7, b"b", digest="d1")
    assert (refused.status, refused.message) == (409, "OTHER_DIGEST")
    assert content(web, "other") == [b"a"]


def test_lines_are_published_once_as_well(web: Http) -> None:
    for _ in range(2):
        assert web.post("/mpub?topic=lines&producer=p&sequence=0&digest=00", b"a\nb\n").body == b"OK"
    assert content(web, "lines") == [b"a", b"b"]


def test_a_producer_can_be_asked_for(web: Http, nsqd: Nsqd) -> None:
    before = time.time_ns()
    once(web, "asked", 7, b"a", digest="C0FFEE")
    found = web.get("/producer?producer=loader-1").json()
    assert found["node"] == web.get("/info").json()["node"]
    assert found["mark"] is None
    state = found["topics"]["asked"]
    assert (state["sequence"], state["digest"]) == (7, "c0ffee")
    assert before <= state["when"] <= time.time_ns()
    # who never published is none, until he leaves a mark
    assert web.get("/producer?producer=nobody").json()["topics"] == {}
    assert web.post("/producer/mark?producer=nobody&sequence=3&digest=0a").status == 200
    assert web.get("/producer?producer=nobody").json()["mark"]["sequence"] == 3


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        pytest.param("producer=&sequence=1&digest=00", 400, "INVALID_ARG_PRODUCER", id="no-name"),
        pytest.param("producer=a%20b&sequence=1&digest=00", 400, "INVALID_ARG_PRODUCER", id="bad-name"),
        pytest.param(f"producer={'x' * 65}&sequence=1&digest=00", 400, "INVALID_ARG_PRODUCER", id="long-name"),
        pytest.param("producer=p&digest=00", 400, "MISSING_ARG_SEQUENCE", id="no-sequence"),
        pytest.param("producer=p&sequence=-1&digest=00", 400, "INVALID_ARG_SEQUENCE", id="below-zero"),
        pytest.param(f"producer=p&sequence={1 << 63}&digest=00", 400, "INVALID_ARG_SEQUENCE", id="too-high"),
        pytest.param("producer=p&sequence=1", 400, "MISSING_ARG_DIGEST", id="no-digest"),
        pytest.param("producer=p&sequence=1&digest=abc", 400, "INVALID_ARG_DIGEST", id="half-a-byte"),
        pytest.param(f"producer=p&sequence=1&digest={'00' * 65}", 400, "INVALID_ARG_DIGEST", id="long-digest"),
        pytest.param("producer=p&sequence=1&digest=00&defer=-1", 400, "INVALID_DEFER", id="defer-below-zero"),
        pytest.param("defer=3600001", 400, "INVALID_DEFER", id="defer-too-long"),
        pytest.param("defer=1&due=1", 400, "INVALID_DEFER", id="defer-and-due"),
        pytest.param("due=later", 400, "INVALID_ARG_DUE", id="due-no-number"),
        pytest.param(f"due={(1 << 63) - 1}", 400, "INVALID_DEFER", id="due-too-late"),
    ],
)
def test_what_cannot_be_is_refused(web: Http, query: str, status: int, message: str) -> None:
    refused = web.post(f"/mpub?topic=refused&{query}", b"a")
    assert (refused.status, refused.message) == (status, message)


def test_an_mpub_may_be_deferred_by_a_delay_or_to_a_time(web: Http, nsqd: Nsqd) -> None:
    due = time.time_ns() + HOUR // 2
    assert web.post("/mpub?topic=later&defer=1800000", b"a\nb").body == b"OK"
    assert web.post(f"/mpub?topic=later&binary=true&due={due}", binary(b"c")).body == b"OK"
    assert once(web, "later", 1, b"d", more=f"&due={due}").body == b"OK"
    assert once(web, "later", 1, b"d", more=f"&due={due}").headers["x-penstock-sequence"] == "1"
    web.post("/channel/create?topic=later&channel=c")
    [topic] = nsqd.stats("&topic=later")["topics"]
    assert (topic["message_count"], topic["channels"][0]["deferred_count"]) == (4, 4)
    # and what is due already is there at once
    assert web.post("/mpub?topic=later&due=1", b"e").body == b"OK"
    assert web.post("/mpub?topic=later&defer=0", b"f").body == b"OK"
    assert content(web, "later") == [b"e", b"f"]


@pytest.mark.parametrize("flag", [[], ["--sync-every=1"]], ids=["", "flushed-each"])
def test_a_killed_node_knows_what_it_was_sent(tmp_path: Path, flag: list[str]) -> None:
    # given a producer whose answers all came, and a node that is killed
    daemon = Nsqd(tmp_path, *flag)
    web = Http(daemon.http)
    big = bytes(1 << 20)
    for sequence in range(5):
        assert once(web, "t", sequence, b"%d" % sequence, big if sequence == 3 else b".").body == b"OK"
    assert once(web, "t", 9, b"later", more="&defer=3600000").body == b"OK"
    web.close()
    daemon.kill()
    # when all is sent again to the next one, then it is there once
    daemon.start()
    web = Http(daemon.http)
    for sequence in range(5):
        assert once(web, "t", sequence, b"%d" % sequence).headers["x-penstock-sequence"] == "9"
    assert once(web, "t", 9, b"later", more="&defer=3600000").headers["x-penstock-sequence"] == "9"
    assert web.get("/log?topic=t").json()["committed"] == 10
    web.close()
    assert daemon.stop() == 0
    daemon.assert_calm()
