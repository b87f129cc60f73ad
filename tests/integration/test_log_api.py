"""A topic's log over HTTP, as Spark and curl read it: what there is, batches by offset, offsets by time."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.protocol.batch import check, header, records, seed_of
from tests.integration.daemon import Nsqd
from tests.integration.http_client import Answer, Http

if TYPE_CHECKING:
    from penstock.protocol.batch import Record

LARGE = 200_000  # bytes of some messages


@pytest.fixture(scope="module")
def nsqd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nsqd]:
    """One for all tests here: each has topics of its own."""
    daemon = Nsqd(tmp_path_factory.mktemp("nsqd"), "--max-bytes-per-file=1000000", "--mem-queue-size=3")
    yield daemon
    assert daemon.stop() == 0
    daemon.assert_calm()


def publish(web: Http, topic: str, *bodies: bytes) -> None:
    """A batch each."""
    for body in bodies:
        assert web.post(f"/pub?topic={topic}", body).body == b"OK"


def batches(answer: Answer) -> list[tuple[int, int]]:
    """[first, next) of each; they are whole and good, and what the headers say."""
    assert answer.status == 200, answer.body
    found, at = [], 0
    while at < len(answer.body):
        assert check(answer.body, at, seed_of(answer.headers["x-penstock-incarnation"])) > at
        head = header(answer.body, at)
        found.append((head.first, head.next))
        at = head.end
    if found:
        assert found[0][0] == int(answer.headers["x-penstock-first"])
        assert found[-1][1] == int(answer.headers["x-penstock-next"])
    return found


def all_of(web: Http, topic: str, query: str = "") -> list[Record]:
    """As a reader does it: on from where the last answer ended."""
    found: list[Record] = []
    at = web.get(f"/log?topic={topic}").json()["earliest"]
    while True:
        answer = web.get(f"/log/read?topic={topic}&offset={at}{query}")
        next_ = int(answer.headers["x-penstock-next"])
        if next_ == at:
            return found
        batches(answer)
        found += records(answer.body)
        at = next_


# --- what there is


def test_what_there_is_of_a_log(web: Http) -> None:
    # given a topic of two batches, without a channel
    publish(web, "there", b"a")
    web.post("/mpub?topic=there", b"b\nc")
    # when somebody asks
    found = web.get("/log?topic=there").json()
    # then all is said of it
    [segment] = found.pop("segments")
    assert (segment["first"], segment["end"]) == (0, 3)
    assert segment["bytes"] == len(web.get("/log/read?topic=there&offset=0").body)
    assert segment["first_time"] <= segment["last_time"] <= time.time_ns()
    assert len(found.pop("node")) == len(found.pop("incarnation")) == 16
    assert 0 <= found.pop("base") < 1 << 62
    assert found == {"topic": "there", "earliest": 0, "routed": 0, "committed": 3, "holes": []}


def test_r_is_told_and_does_not_bound_what_is_read(web: Http) -> None:
    publish(web, "routed", b"a")
    web.post("/channel/create?topic=routed&channel=c")
    web.post("/topic/pause?topic=routed")
    publish(web, "routed", b"b")
    found = web.get("/log?topic=routed").json()
    assert (found["routed"], found["committed"]) == (1, 2)
    assert [record.body for record in all_of(web, "routed")] == [b"a", b"b"]


def test_what_was_emptied_is_a_hole(web: Http) -> None:
    # given two messages, of which the first ones were emptied
    publish(web, "holes", b"a", b"b")
    web.post("/topic/empty?topic=holes")
    assert web.get("/log?topic=holes").json()["holes"] == [[0, 2, "emptied"]]
    # then a reader passes them over, at the end
    answer = web.get("/log/read?topic=holes&offset=0")
    assert (answer.body, answer.headers["x-penstock-next"]) == (b"", "2")
    # and before other messages
    publish(web, "holes", b"c")
    assert batches(web.get("/log/read?topic=holes&offset=0")) == [(2, 3)]
    assert batches(web.get("/log/read?topic=holes&offset=0&until=1")) == []
    assert web.get("/log/read?topic=holes&offset=0&until=1").headers["x-penstock-next"] == "1"


def test_what_is_deferred_is_no_row_before_it_is_due(web: Http, nsqd: Nsqd) -> None:
    assert web.post("/pub?topic=deferred&defer=60000", b"later").body == b"OK"
    publish(web, "deferred", b"now")
    assert [record.body for record in all_of(web, "deferred")] == [b"now"]
    # when one becomes due, its channel says so
    web.post("/channel/create?topic=deferred&channel=c")
    assert web.post("/pub?topic=deferred&defer=1", b"soon").body == b"OK"
    with nsqd.client() as client:
        client.subscribe("deferred", "c", 10)
        assert {client.message().body for _ in range(2)} == {b"now", b"soon"}
    assert [record.body for record in all_of(web, "deferred")] == [b"now", b"soon"]


def test_an_ephemeral_topic_has_a_log_too(web: Http) -> None:
    name = "short%23ephemeral"
    publish(web, name, *(b"%d" % number for number in range(6)))
    found = web.get(f"/log?topic={name}").json()
    assert (found["earliest"], found["committed"]) == (3, 6)
    assert [(each["first"], each["end"]) for each in found["segments"]] == [(3, 6)]
    assert batches(web.get(f"/log/read?topic={name}&offset=3&max_bytes=1")) == [(3, 4)]
    assert batches(web.get(f"/log/read?topic={name}&offset=4&until=6")) == [(4, 5), (5, 6)]
    assert [record.body for record in all_of(web, name)] == [b"3", b"4", b"5"]
    assert web.get(f"/log/read?topic={name}&offset=2").status == 416
    assert web.get(f"/log/at?topic={name}&timestamp=0").json() == {"offset": 3}
    web.post(f"/topic/empty?topic={name}")
    publish(web, name, b"6")
    assert web.get(f"/log?topic={name}").json()["holes"] == []
    assert [record.body for record in all_of(web, name)] == [b"6"]


# --- batches


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("offset=0", [(0, 2), (2, 4), (4, 6)], id="all"),
        pytest.param("offset=3", [(2, 4), (4, 6)], id="from-the-middle-of-a-batch"),
        pytest.param("offset=0&max_bytes=0", [(0, 2)], id="one-batch-at-least"),
        pytest.param("offset=0&max_bytes=1", [(0, 2)], id="fewer-bytes-than-a-batch"),
        pytest.param("offset=0&until=2", [(0, 2)], id="until-the-end-of-a-batch"),
        pytest.param("offset=0&until=3", [(0, 2), (2, 4)], id="until-the-middle-of-one"),
        pytest.param("offset=3&until=4", [(2, 4)], id="one"),
        pytest.param("offset=0&until=9223372036854775807", [(0, 2), (2, 4), (4, 6)], id="until-far-beyond"),
        pytest.param("offset=0&until=6&max_bytes=1", [(0, 2)], id="whichever-is-less"),
        pytest.param("offset=4&until=2", [], id="until-below-the-offset"),
        pytest.param("offset=6", [], id="at-the-end"),
        pytest.param("offset=6&until=8", [], id="at-the-end-until-later"),
    ],
)
def test_whole_batches_from_the_one_that_holds_the_offset(
    web: Http, query: str, expected: list[tuple[int, int]]
) -> None:
    if web.get("/log?topic=batches").status == 404:
        for _ in range(3):
            web.post("/mpub?topic=batches", b"m\nm")
    assert batches(web.get(f"/log/read?topic=batches&{query}")) == expected


def test_at_the_end_the_answer_is_empty_and_says_where_to_go_on(web: Http) -> None:
    publish(web, "end", b"a")
    answer = web.get("/log/read?topic=end&offset=1")
    told = {name: value for name, value in answer.headers.items() if name.startswith("x-penstock-")}
    known = web.get("/log?topic=end").json()
    assert (answer.status, answer.body, answer.headers["content-type"]) == (200, b"", "application/octet-stream")
    assert told == {
        "x-penstock-first": "1",
        "x-penstock-next": "1",
        "x-penstock-incarnation": known["incarnation"],
        "x-penstock-node": known["node"],
    }
    # and goes on when there is more
    publish(web, "end", b"b")
    assert batches(web.get("/log/read?topic=end&offset=1")) == [(1, 2)]


@pytest.mark.parametrize("query", ["", "&max_bytes=1", "&max_bytes=300000", "&max_bytes=700000", "&until=30"])
def test_over_many_segments_each_message_comes_once(web: Http, query: str) -> None:
    # given more than what is in memory, in several files
    bodies = [bytes([number]) * LARGE for number in range(30)]
    if web.get("/log?topic=segments").status == 404:
        publish(web, "segments", *bodies)
    assert len(web.get("/log?topic=segments").json()["segments"]) > 3
    # then a reader gets all of it, in as many answers as it takes
    assert [record.body for record in all_of(web, "segments", query)] == bodies


def test_about_as_many_bytes_as_were_asked_for(web: Http) -> None:
    web.post("/topic/create?topic=sizes")
    for _ in range(400):
        publish(web, "sizes", b"m" * 10_000)
    for size in (64 << 10, 500_000, 1_000_000, 3_000_000):
        found = len(web.get(f"/log/read?topic=sizes&offset=0&max_bytes={size}").body)
        assert size - (80 << 10) < found <= size, f"{found} bytes, not {size}"
    usual = len(web.get("/log/read?topic=sizes&offset=0").body)
    assert (1 << 20) - (80 << 10) < usual <= 1 << 20


def test_an_answer_is_streamed_as_its_client_takes_it(web: Http, nsqd: Nsqd) -> None:
    # given far more than sockets hold, and a client that reads nothing
    web.post("/topic/create?topic=stream")
    line = b"m" * 100_000
    for _ in range(20):
        assert web.post("/mpub?topic=stream", b"\n".join([line] * 40)).body == b"OK"
    before = nsqd.resident()
    with socket.create_connection(("127.0.0.1", nsqd.http), timeout=20) as slow:
        slow.sendall(b"GET /log/read?topic=stream&offset=0&until=800 HTTP/1.1\r\nHost: h\r\n\r\n")
        head = slow.recv(100)
        assert head.startswith(b"HTTP/1.1 200")
        # then others are served meanwhile, and little of it is in memory
        assert web.get("/ping").body == b"OK"
        assert nsqd.resident() - before < 40 << 20
        # and it all comes, when it is taken
        came = len(head)
        while came < 80_000_000:
            came += len(slow.recv(1 << 20))


def test_an_answer_whose_topic_is_deleted_is_cut(web: Http, nsqd: Nsqd) -> None:
    web.post("/topic/create?topic=cut")
    for _ in range(20):
        web.post("/mpub?topic=cut", b"\n".join([b"m" * 100_000] * 40))
    with socket.create_connection(("127.0.0.1", nsqd.http), timeout=20) as slow:
        slow.sendall(b"GET /log/read?topic=cut&offset=0&until=800 HTTP/1.1\r\nHost: h\r\n\r\n")
        assert slow.recv(100).startswith(b"HTTP/1.1 200")
        web.post("/topic/delete?topic=cut")
        came = 0
        try:
            while part := slow.recv(1 << 20):
                came += len(part)
        except ConnectionResetError:
            pass
        assert came < 80_000_000
    nsqd.wait_for_line("/log/read?topic=cut&offset=0&until=800: HttpError(")


def test_head_says_what_get_would(web: Http) -> None:
    publish(web, "head", b"a")
    answer = web.ask("HEAD", "/log/read?topic=head&offset=0")
    assert (answer.status, answer.body, answer.headers["x-penstock-next"]) == (200, b"", "1")


# --- offsets by time


def test_the_offset_of_a_time_is_that_of_the_first_batch_from_then_on(web: Http) -> None:
    publish(web, "times", b"a")
    publish(web, "times", b"b")
    first, second = (header(web.get(f"/log/read?topic=times&offset={at}").body).appended for at in (0, 1))
    for moment, offset in ((0, 0), (first, 0), (first + 1, 1), (second, 1), (second + 1, 2), (1 << 62, 2)):
        assert web.get(f"/log/at?topic=times&timestamp={moment}").json() == {"offset": offset}


# --- what is refused


@pytest.mark.parametrize(
    ("target", "status", "expected"),
    [
        pytest.param("/log", 400, {"message": "MISSING_ARG_TOPIC"}, id="no-topic"),
        pytest.param("/log?topic=$", 400, {"message": "INVALID_TOPIC"}, id="bad-topic"),
        pytest.param("/log?topic=nope", 404, {"message": "TOPIC_NOT_FOUND"}, id="unknown-topic"),
        pytest.param("/log/read", 400, {"message": "MISSING_ARG_TOPIC"}, id="read-no-topic"),
        pytest.param("/log/read?topic=nope&offset=0", 404, {"message": "TOPIC_NOT_FOUND"}, id="read-unknown"),
        pytest.param("/log/read?topic=refused", 400, {"message": "MISSING_ARG_OFFSET"}, id="no-offset"),
        pytest.param("/log/read?topic=refused&offset=", 400, {"message": "INVALID_ARG_OFFSET"}, id="empty-offset"),
        pytest.param("/log/read?topic=refused&offset=-1", 400, {"message": "INVALID_ARG_OFFSET"}, id="negative"),
        pytest.param("/log/read?topic=refused&offset=0x1", 400, {"message": "INVALID_ARG_OFFSET"}, id="hexadecimal"),
        pytest.param(f"/log/read?topic=refused&offset={1 << 63}", 400, {"message": "INVALID_ARG_OFFSET"}, id="huge"),
        pytest.param(
            "/log/read?topic=refused&offset=0&until=x", 400, {"message": "INVALID_ARG_UNTIL"}, id="until-no-number"
        ),
        pytest.param(
            "/log/read?topic=refused&offset=0&max_bytes=1k", 400, {"message": "INVALID_ARG_MAX_BYTES"}, id="size"
        ),
        pytest.param(
            "/log/read?topic=refused&offset=2", 416, {"message": "BEYOND_THE_END", "committed": 1}, id="beyond-the-end"
        ),
        pytest.param("/log/at?topic=refused", 400, {"message": "MISSING_ARG_TIMESTAMP"}, id="no-time"),
        pytest.param("/log/at?topic=refused&timestamp=now", 400, {"message": "INVALID_ARG_TIMESTAMP"}, id="bad-time"),
        pytest.param("/log/at?topic=nope&timestamp=1", 404, {"message": "TOPIC_NOT_FOUND"}, id="at-unknown"),
    ],
)
def test_what_is_refused(web: Http, target: str, status: int, expected: dict[str, Any]) -> None:
    if web.get("/log?topic=refused").status == 404:
        publish(web, "refused", b"m")
    answer = web.get(target)
    assert (answer.status, answer.json()) == (status, expected)


@pytest.mark.parametrize("path", ["/log", "/log/read", "/log/at"])
def test_only_get_reads(web: Http, path: str) -> None:
    answer = web.post(f"{path}?topic=t&offset=0")
    assert (answer.status, answer.message, answer.headers["allow"]) == (405, "METHOD_NOT_ALLOWED", "GET, HEAD, OPTIONS")


def test_another_incarnation_is_refused(web: Http) -> None:
    publish(web, "again", b"m")
    was = web.get("/log?topic=again").json()["incarnation"]
    assert web.get(f"/log/read?topic=again&offset=0&incarnation={was}").status == 200
    web.post("/topic/delete?topic=again")
    publish(web, "again", b"m")
    answer = web.get(f"/log/read?topic=again&offset=0&incarnation={was}")
    now = web.get("/log?topic=again").json()["incarnation"]
    assert (answer.status, answer.json()) == (409, {"message": "OTHER_INCARNATION", "incarnation": now})
    assert now != was


# --- nodes of their own


def test_what_is_deleted_is_416_with_the_earliest(tmp_path: Path) -> None:
    # given a node that keeps nothing that was consumed, in small files
    nsqd = Nsqd(tmp_path, "--max-bytes-per-file=1000", "--retention-bytes=0", "--sync-timeout=10ms")
    web = Http(nsqd.http)
    publish(web, "t", *(b"m" * 500 for _ in range(10)))
    web.post("/channel/create?topic=t&channel=c")
    # when all is consumed
    web.post("/channel/empty?topic=t&channel=c")
    earliest = 0
    deadline = time.monotonic() + 10
    while earliest < 9 and time.monotonic() < deadline:
        earliest = web.get("/log?topic=t").json()["earliest"]
    assert earliest == 9
    while (answer := web.get("/log/read?topic=t&offset=0&max_bytes=1")).status == 200 and time.monotonic() < deadline:
        pass  # still being deleted
    # then it says from where on there is something
    assert (answer.status, answer.json()) == (416, {"message": "NOT_RETAINED", "earliest": 9})
    assert batches(web.get("/log/read?topic=t&offset=9")) == [(9, 10)]
    web.close()
    assert nsqd.stop() == 0
    nsqd.assert_calm()


def test_damage_is_stepped_over_and_told_as_a_hole(tmp_path: Path) -> None:
    # given a log with bad bytes in its middle, found by a start
    nsqd = Nsqd(tmp_path)
    web = Http(nsqd.http)
    publish(web, "t", *(b"m" * 100 for _ in range(10)))
    web.close()
    nsqd.kill()
    [path] = tmp_path.glob("topics/t@*/*.log")
    with path.open("r+b") as file:
        file.seek(4 * path.stat().st_size // 10 + 50)
        file.write(b"\0" * 8)
        os.fsync(file.fileno())
    nsqd.start()
    web = Http(nsqd.http)
    # then its neighbours are read, and the hole is told
    assert [record.offset for record in all_of(web, "t")] == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    assert web.get("/log?topic=t").json()["holes"] == [[4, 5, "damaged"]]
    web.close()
    assert nsqd.stop() == 0


def test_what_is_not_flushed_is_not_read_where_publishes_wait_for_it(tmp_path: Path) -> None:
    nsqd = Nsqd(tmp_path, "--sync-every=1")
    web = Http(nsqd.http)
    publish(web, "t", b"a")
    assert web.get("/log?topic=t").json()["committed"] == 1
    assert batches(web.get("/log/read?topic=t&offset=0")) == [(0, 1)]
    web.close()
    assert nsqd.stop() == 0
