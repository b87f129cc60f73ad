"""NSQ's HTTP API, as curl and nsqadmin meet it. What is expected is what an original nsqd 1.3.0 answered."""

from __future__ import annotations

import json
import re
import socket
import struct
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.integration.client import Client
from tests.integration.daemon import Nsqd
from tests.integration.http_client import Answer, Http

V1 = "nsq; version=1.0"
JSON = "application/json; charset=utf-8"
TEXT = "text/plain; charset=utf-8"
MAX_MSG = 2000
MAX_BODY = 10_000


@pytest.fixture(scope="module")
def nsqd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nsqd]:
    """One for all tests here: each has topics of its own."""
    daemon = Nsqd(tmp_path_factory.mktemp("nsqd"), f"--max-msg-size={MAX_MSG}", f"--max-body-size={MAX_BODY}")
    yield daemon
    assert daemon.stop() == 0
    daemon.assert_calm()


def framed(*bodies: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(body)) + body for body in bodies)


def binary(*bodies: bytes) -> bytes:
    return struct.pack(">i", len(bodies)) + framed(*bodies)


def take(nsqd: Nsqd, topic: str, count: int) -> list[bytes]:
    """So many messages of the topic, finished on channel `c`."""
    with nsqd.client() as client:
        client.subscribe(topic, "c", count)
        found = [client.message() for _ in range(count)]
        for message in found:
            client.finish(message)
        settle(client)
    return [message.body for message in found]


def settle(client: Client) -> None:
    assert client.ask("FIN 0000000000000000").startswith(b"E_FIN_FAILED")


def ended(client: Client) -> bool:
    """The other side closed the connection."""
    try:
        client.until_it_ends()
    except (EOFError, ConnectionResetError):
        return True
    return False


# --- what is answered, by NSQ's table


def test_ping(web: Http) -> None:
    answer = web.get("/ping")
    assert (answer.status, answer.body, answer.headers["content-type"]) == (200, b"OK", TEXT)
    assert "x-nsq-content-type" not in answer.headers


def test_info_says_where_the_node_is(web: Http, nsqd: Nsqd) -> None:
    answer = web.get("/info")
    assert (answer.status, answer.headers["content-type"], answer.headers["x-nsq-content-type"]) == (200, JSON, V1)
    found = answer.json()
    assert {name: type(value) for name, value in found.items()} == {
        "version": str, "broadcast_address": str, "hostname": str, "http_port": int, "tcp_port": int,
        "start_time": int, "max_heartbeat_interval": int, "max_output_buffer_size": int,
        "max_output_buffer_timeout": int, "max_deflate_level": int, "topology_zone": str, "topology_region": str,
        "penstock_version": str,
        "node": str,
    }  # fmt: skip
    assert (found["version"], found["tcp_port"], found["http_port"]) == ("1.3.0", nsqd.tcp, nsqd.http)
    assert (found["max_heartbeat_interval"], found["max_output_buffer_size"]) == (60 * 10**9, 64 << 10)


@pytest.mark.parametrize(
    ("target", "body", "status", "expected"),
    [
        pytest.param("/pub?topic=p", b"", 400, "MSG_EMPTY", id="empty"),
        pytest.param("/pub", b"", 400, "MSG_EMPTY", id="empty-comes-before-the-topic"),
        pytest.param("/pub", b"m", 400, "MISSING_ARG_TOPIC", id="no-topic"),
        pytest.param("/pub?topic=", b"m", 400, "INVALID_TOPIC", id="topic-without-a-name"),
        pytest.param("/pub?topic=a%20b", b"m", 400, "INVALID_TOPIC", id="bad-topic"),
        pytest.param(f"/pub?topic={'x' * 65}", b"m", 400, "INVALID_TOPIC", id="long-topic"),
        pytest.param("/pub?topic=%zz", b"m", 400, "INVALID_REQUEST", id="bad-escape"),
        pytest.param("/pub?topic=p", b"x" * (MAX_MSG + 1), 413, "MSG_TOO_BIG", id="too-big"),
        pytest.param("/pub?topic=p&defer=-1", b"m", 400, "INVALID_DEFER", id="defer-below-zero"),
        pytest.param("/pub?topic=p&defer=", b"m", 400, "INVALID_DEFER", id="defer-empty"),
        pytest.param("/pub?topic=p&defer=1s", b"m", 400, "INVALID_DEFER", id="defer-no-number"),
        pytest.param("/pub?topic=p&defer=3600001", b"m", 400, "INVALID_DEFER", id="defer-too-long"),
        pytest.param("/mpub", b"m", 400, "MISSING_ARG_TOPIC", id="mpub-no-topic"),
        pytest.param("/mpub?topic=$", b"m", 400, "INVALID_TOPIC", id="mpub-bad-topic"),
        pytest.param("/mpub?topic=p", b"a\n" + b"x" * (MAX_MSG + 1), 413, "MSG_TOO_BIG", id="mpub-long-line"),
        pytest.param("/mpub?topic=p", b"a\n" * (MAX_BODY // 2 + 1), 413, "BODY_TOO_BIG", id="mpub-too-big"),
        pytest.param("/mpub?topic=p&binary=true", b"", 413, "BAD_BODY", id="binary-empty"),
        pytest.param("/mpub?topic=p&binary=true", b"\0\0\0", 413, "BAD_BODY", id="binary-cut-in-the-count"),
        pytest.param("/mpub?topic=p&binary=true", binary(), 413, "BAD_BODY", id="binary-of-none"),
        pytest.param("/mpub?topic=p&binary=true", b"\x7f\xff\xff\xff", 413, "BAD_BODY", id="binary-of-many"),
        pytest.param("/mpub?topic=p&binary=true", binary(b""), 413, "BAD_MESSAGE", id="binary-empty-message"),
        pytest.param("/mpub?topic=p&binary=true", binary(b"aa")[:-1], 413, "BAD_MESSAGE", id="binary-cut"),
        pytest.param("/mpub?topic=p&binary=1", binary(b"a", b"b")[:-5], 413, "BAD_MESSAGE", id="binary-one-missing"),
        pytest.param(
            "/mpub?topic=p&binary=1", binary(b"x" * (MAX_MSG + 1)), 413, "BAD_MESSAGE", id="binary-message-too-big"
        ),
        pytest.param("/topic/create", b"", 400, "MISSING_ARG_TOPIC", id="create-nothing"),
        pytest.param("/topic/create?topic=$", b"", 400, "INVALID_TOPIC", id="create-bad"),
        pytest.param("/topic/empty?topic=$", b"", 400, "INVALID_TOPIC", id="empty-bad"),
        pytest.param("/topic/empty?topic=nope", b"", 404, "TOPIC_NOT_FOUND", id="empty-unknown"),
        pytest.param("/topic/delete?topic=$", b"", 404, "TOPIC_NOT_FOUND", id="delete-bad"),
        pytest.param("/topic/pause?topic=$", b"", 404, "TOPIC_NOT_FOUND", id="pause-bad"),
        pytest.param("/topic/unpause", b"", 400, "MISSING_ARG_TOPIC", id="unpause-nothing"),
        pytest.param("/channel/create?topic=nope&channel=c", b"", 404, "TOPIC_NOT_FOUND", id="channel-of-no-topic"),
        pytest.param("/channel/create?topic=$&channel=c", b"", 400, "INVALID_ARG_TOPIC", id="channel-of-bad-topic"),
        pytest.param("/channel/delete?topic=nope", b"", 400, "MISSING_ARG_CHANNEL", id="no-channel"),
        pytest.param("/channel/pause?topic=nope&channel=$", b"", 400, "INVALID_ARG_CHANNEL", id="bad-channel"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_nsq_s_words(web: Http, target: str, body: bytes, status: int, expected: str) -> None:
    answer = web.post(target, body)
    assert (answer.status, answer.message) == (status, expected)
    assert (answer.headers["content-type"], answer.headers["x-nsq-content-type"]) == (JSON, V1)


@pytest.mark.parametrize("what", ["delete", "empty", "pause", "unpause"])
def test_a_channel_that_is_not_there_is_not_found(web: Http, what: str) -> None:
    assert web.post("/topic/create?topic=alone").status == 200
    answer = web.post(f"/channel/{what}?topic=alone&channel=nope")
    assert (answer.status, answer.message) == (404, "CHANNEL_NOT_FOUND")


@pytest.mark.parametrize(
    ("method", "target", "allowed"),
    [
        ("GET", "/pub", "OPTIONS, POST"),
        ("PUT", "/mpub", "OPTIONS, POST"),
        ("POST", "/ping", "GET, HEAD, OPTIONS"),
        ("DELETE", "/topic/delete", "OPTIONS, POST"),
        ("POST", "/config/log_level", "GET, HEAD, OPTIONS, PUT"),
    ],
)
def test_another_method_is_not_allowed(web: Http, method: str, target: str, allowed: str) -> None:
    answer = web.ask(method, target)
    assert (answer.status, answer.message, answer.headers["allow"]) == (405, "METHOD_NOT_ALLOWED", allowed)


def test_what_is_nowhere_is_not_found(web: Http) -> None:
    answer = web.get("/nope")
    assert (answer.status, answer.message) == (404, "NOT_FOUND")


def test_head_is_get_without_its_body(web: Http) -> None:
    answer = web.ask("HEAD", "/ping")
    assert (answer.status, answer.body, answer.headers["content-length"]) == (200, b"", "2")


@pytest.mark.parametrize("family", ["unix", "ipv6"])
def test_http_on_other_sockets(tmp_path: Path, family: str) -> None:
    path = str(tmp_path / "http.sock")
    if family == "ipv6" and not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    nsqd = Nsqd(tmp_path, "--http-address=" + (path if family == "unix" else "[::1]:0"))
    where = path if family == "unix" else ("::1", nsqd.http)
    with socket.socket(socket.AF_UNIX if family == "unix" else socket.AF_INET6) as client:
        client.settimeout(10)
        client.connect(where)
        client.sendall(b"GET /info HTTP/1.0\r\n\r\n")
        answer = b"".join(iter(partial(client.recv, 65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert json.loads(body)["http_port"] == nsqd.http
    assert nsqd.stop() == 0
    assert not Path(path).exists()
    nsqd.assert_calm()


# --- publishing


@pytest.mark.parametrize("path", ["/pub", "/put"])
def test_what_is_published_is_delivered(web: Http, nsqd: Nsqd, path: str) -> None:
    topic = f"published{path.replace('/', '-')}"
    answer = web.post(f"{path}?topic={topic}", b"hello world")
    assert (answer.status, answer.body) == (200, b"OK")
    assert (answer.headers["content-type"], answer.headers["x-nsq-content-type"]) == (TEXT, V1)
    assert take(nsqd, topic, 1) == [b"hello world"]


@pytest.mark.parametrize(
    ("query", "body", "expected"),
    [
        pytest.param("", b"a\nb\n\nc", [b"a", b"b", b"c"], id="lines"),
        pytest.param("&binary=false", b"a\r\nb\n", [b"a\r", b"b"], id="lines-end-with-newline-alone"),
        pytest.param("&binary=0", b"a", [b"a"], id="no"),
        pytest.param("&binary=true", binary(b"a\nb", b"\0"), [b"a\nb", b"\0"], id="binary"),
        pytest.param("&binary=", binary(b"a"), [b"a"], id="a-word-that-is-none-means-yes"),
        pytest.param("&binary=1", binary(b"a") + b"behind", [b"a"], id="what-stands-behind-is-passed-over"),
        pytest.param("", b"x" * MAX_MSG, [b"x" * MAX_MSG], id="as-long-as-may-be"),
    ],
)
def test_mpub_publishes_many(
    web: Http, nsqd: Nsqd, request: pytest.FixtureRequest, query: str, body: bytes, expected: list[bytes]
) -> None:
    topic = f"mpub-{request.node.callspec.id}"
    answer = web.post(f"/mpub?topic={topic}{query}", body)
    assert (answer.status, answer.body) == (200, b"OK")
    assert take(nsqd, topic, len(expected)) == expected


def test_mpub_of_nothing_makes_the_topic(web: Http, nsqd: Nsqd) -> None:
    assert web.post("/mpub?topic=nothing", b"\n\n").body == b"OK"
    assert nsqd.stats("&topic=nothing")["topics"][0]["message_count"] == 0


def test_a_bad_delay_makes_the_topic_as_in_nsq(web: Http, nsqd: Nsqd) -> None:
    assert web.post("/pub?topic=bad-delay&defer=x", b"m").status == 400
    assert nsqd.stats("&topic=bad-delay")["topics"][0]["message_count"] == 0


def test_a_message_may_be_deferred(web: Http, nsqd: Nsqd) -> None:
    # given a channel, and a message for later beside one for now
    web.post("/topic/create?topic=later")
    web.post("/channel/create?topic=later&channel=c")
    assert web.post("/pub?topic=later&defer=300", b"later").body == b"OK"
    assert web.post("/pub?topic=later&defer=0", b"now").body == b"OK"
    channel = nsqd.channel("later", "c")
    assert (channel["depth"], channel["deferred_count"]) == (1, 1)
    # then they come in the order of their times
    assert take(nsqd, "later", 2) == [b"now", b"later"]


def test_an_ephemeral_topic_is_published_to_by_its_escaped_name(web: Http, nsqd: Nsqd) -> None:
    web.post("/topic/create?topic=e%23ephemeral")
    web.post("/channel/create?topic=e%23ephemeral&channel=c%23ephemeral")
    assert web.post("/pub?topic=e%23ephemeral", b"m").body == b"OK"
    assert nsqd.channel("e%23ephemeral", "c%23ephemeral")["depth"] == 1


def test_published_in_one_chunked_body(web: Http, nsqd: Nsqd) -> None:
    web.send("POST", "/pub?topic=chunked", iter([b"hel", b"lo"]))
    assert web.answer().body == b"OK"
    assert take(nsqd, "chunked", 1) == [b"hello"]


def test_with_sync_every_1_the_answer_waits_for_the_flush(tmp_path: Path) -> None:
    nsqd = Nsqd(tmp_path, "--sync-every=1")
    web = Http(nsqd.http)
    assert [web.post("/pub?topic=t", b"%d" % number).body for number in range(3)] == [b"OK"] * 3
    assert web.post("/mpub?topic=t", b"a\nb").body == b"OK"
    assert web.post("/pub?topic=t&defer=3600000", b"later").body == b"OK"
    web.close()
    nsqd.kill()
    nsqd.start()
    assert take(nsqd, "t", 5) == [b"0", b"1", b"2", b"a", b"b"]
    assert nsqd.channel("t", "c")["deferred_count"] == 1
    assert nsqd.stop() == 0
    nsqd.assert_calm()


# --- topics and channels


def done(answer: Answer) -> bool:
    """Answered as nsqd answers what it has nothing to say to."""
    said = (answer.status, answer.body, answer.headers.get("x-nsq-content-type"), answer.headers.get("content-type"))
    return said == (200, b"", V1, None)


def test_topics_and_channels_are_made_once(web: Http, nsqd: Nsqd) -> None:
    for _ in range(2):
        assert done(web.post("/topic/create?topic=made"))
        assert done(web.post("/channel/create?topic=made&channel=c"))
    found = nsqd.stats("&topic=made")["topics"][0]
    assert [channel["channel_name"] for channel in found["channels"]] == ["c"]


def test_a_paused_topic_keeps_its_messages_to_itself(web: Http, nsqd: Nsqd) -> None:
    # given a paused topic with a channel
    web.post("/topic/create?topic=paused")
    web.post("/channel/create?topic=paused&channel=c")
    assert done(web.post("/topic/pause?topic=paused"))
    web.post("/pub?topic=paused", b"m")
    found = nsqd.stats("&topic=paused")["topics"][0]
    assert (found["paused"], found["depth"], found["channels"][0]["depth"]) == (True, 1, 0)
    # when it goes on
    assert done(web.post("/topic/unpause?topic=paused"))
    # then the channel has it
    found = nsqd.stats("&topic=paused")["topics"][0]
    assert (found["paused"], found["depth"], found["channels"][0]["depth"]) == (False, 0, 1)


def test_a_paused_channel_gives_nothing_until_it_goes_on(web: Http, nsqd: Nsqd) -> None:
    web.post("/pub?topic=paused-channel", b"m")
    with nsqd.client() as client:
        client.subscribe("paused-channel", "c", 0)
        assert done(web.post("/channel/pause?topic=paused-channel&channel=c"))
        client.send(b"RDY 1\n")
        settle(client)
        assert client.messages == []
        assert nsqd.channel("paused-channel", "c")["paused"] is True
        assert done(web.post("/channel/unpause?topic=paused-channel&channel=c"))
        assert client.message().body == b"m"


def test_emptied_topics_and_channels_have_nothing(web: Http, nsqd: Nsqd) -> None:
    web.post("/mpub?topic=full", b"a\nb")
    assert done(web.post("/topic/empty?topic=full"))
    assert nsqd.stats("&topic=full")["topics"][0]["depth"] == 0
    web.post("/channel/create?topic=full&channel=c")
    web.post("/mpub?topic=full", b"c\nd")
    assert nsqd.channel("full", "c")["depth"] == 2
    assert done(web.post("/channel/empty?topic=full&channel=c"))
    assert nsqd.channel("full", "c")["depth"] == 0
    web.post("/pub?topic=full", b"e")
    assert take(nsqd, "full", 1) == [b"e"]


@pytest.mark.parametrize("what", ["channel", "topic"])
def test_consumers_of_what_is_deleted_are_sent_away(web: Http, nsqd: Nsqd, what: str) -> None:
    topic = f"deleted-{what}"
    with nsqd.client() as client, nsqd.client() as other:
        web.post(f"/pub?topic={topic}", b"m")
        client.subscribe(topic, "c", 1)
        assert client.message().body == b"m"
        other.subscribe("other-topic", "c", 1)
        assert done(web.post(f"/{what}/delete?topic={topic}" + ("&channel=c" if what == "channel" else "")))
        assert ended(client)
        settle(other)
    if what == "topic":
        assert nsqd.stats(f"&topic={topic}")["topics"] is None
        assert web.post(f"/topic/delete?topic={topic}").status == 404
    else:
        assert nsqd.stats(f"&topic={topic}")["topics"][0]["channels"] == []
        assert web.post(f"/channel/delete?topic={topic}&channel=c").status == 404


def test_what_was_asked_for_outlives_a_kill(tmp_path: Path) -> None:
    nsqd = Nsqd(tmp_path)
    web = Http(nsqd.http)
    for target in (
        "/topic/create?topic=a", "/channel/create?topic=a&channel=c", "/channel/pause?topic=a&channel=c",
        "/topic/create?topic=b", "/topic/pause?topic=b", "/topic/create?topic=c", "/topic/delete?topic=c",
    ):  # fmt: skip
        assert done(web.post(target))
    web.close()
    nsqd.kill()
    nsqd.start()
    found = nsqd.stats()["topics"]
    assert [(topic["topic_name"], topic["paused"]) for topic in found] == [("a", False), ("b", True)]
    assert [(channel["channel_name"], channel["paused"]) for channel in found[0]["channels"]] == [("c", True)]
    assert nsqd.stop() == 0
    nsqd.assert_calm()


def test_a_topic_retains_what_it_is_told(tmp_path: Path) -> None:
    # given a node whose topics retain a GiB for a day
    nsqd = Nsqd(tmp_path)
    web = Http(nsqd.http)
    web.post("/topic/create?topic=t")

    def retained() -> tuple[int, int]:
        [topic] = nsqd.stats("&topic=t")["topics"]
        return topic["retention_bytes"], topic["retention_time"]

    day = 24 * 3600 * 10**9
    assert retained() == (1 << 30, day)
    # when one is told otherwise, what is not said stays as it was
    for query, expected in (
        ("bytes=0", (0, day)),
        ("time=1h30m", (0, 5400 * 10**9)),
        ("bytes=default&time=0", (1 << 30, 0)),
        ("bytes=123&time=default", (123, day)),
    ):
        answer = web.post(f"/topic/retain?topic=t&{query}")
        assert (answer.status, answer.json()) == (200, {"bytes": expected[0], "time": expected[1]})
        assert retained() == expected
    web.close()
    # then that outlives a kill
    nsqd.kill()
    nsqd.start()
    assert retained() == (123, day)
    assert nsqd.stop() == 0


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        pytest.param("", 400, "MISSING_ARG_TOPIC", id="no-topic"),
        pytest.param("topic=$&bytes=1", 400, "INVALID_TOPIC", id="bad-topic"),
        pytest.param("topic=nope&bytes=1", 404, "TOPIC_NOT_FOUND", id="unknown-topic"),
        pytest.param("topic=keeps", 400, "MISSING_ARG_BYTES", id="nothing-said"),
        pytest.param("topic=keeps&bytes=-1", 400, "INVALID_ARG_BYTES", id="bad-bytes"),
        pytest.param("topic=keeps&bytes=1g&time=1h", 400, "INVALID_ARG_BYTES", id="bytes-with-a-unit"),
        pytest.param("topic=keeps&time=1", 400, "INVALID_ARG_TIME", id="time-without-a-unit"),
        pytest.param("topic=keeps&time=-1h", 400, "INVALID_ARG_TIME", id="time-below-nothing"),
        pytest.param("topic=keeps%23ephemeral&bytes=1", 409, "IS_EPHEMERAL", id="ephemeral"),
    ],
)
def test_what_no_topic_can_retain_is_refused(web: Http, query: str, status: int, message: str) -> None:
    web.post("/topic/create?topic=keeps")
    web.post("/topic/create?topic=keeps%23ephemeral")
    answer = web.post(f"/topic/retain?{query}")
    assert (answer.status, answer.message) == (status, message)


# --- stats

TOPIC = {
    "topic_name": str, "channels": list, "depth": int, "backend_depth": int, "message_count": int,
    "message_bytes": int, "paused": bool, "e2e_processing_latency": dict,
    "retention_bytes": int, "retention_time": int,
}  # fmt: skip
CHANNEL = {
    "channel_name": str, "depth": int, "backend_depth": int, "in_flight_count": int, "deferred_count": int,
    "message_count": int, "requeue_count": int, "timeout_count": int, "client_count": int, "clients": list,
    "paused": bool, "e2e_processing_latency": dict,
}  # fmt: skip
CLIENT = {
    "client_id": str, "hostname": str, "version": str, "remote_address": str, "state": int, "ready_count": int,
    "in_flight_count": int, "message_count": int, "finish_count": int, "requeue_count": int, "connect_ts": int,
    "sample_rate": int, "deflate": bool, "snappy": bool, "user_agent": str, "topology_zone": str,
    "topology_region": str, "tls": bool, "tls_cipher_suite": str, "tls_version": str,
    "tls_negotiated_protocol": str, "tls_negotiated_protocol_is_mutual": bool,
}  # fmt: skip
MEMORY = {
    "heap_objects", "heap_idle_bytes", "heap_in_use_bytes", "heap_released_bytes", "gc_pause_usec_100",
    "gc_pause_usec_99", "gc_pause_usec_95", "next_gc_bytes", "gc_total_runs",
}  # fmt: skip


def types(row: dict[str, Any]) -> dict[str, type]:
    return {name: type(value) for name, value in row.items()}


def test_stats_have_nsq_s_keys_and_types(web: Http, nsqd: Nsqd) -> None:
    with nsqd.client() as producer, nsqd.client() as consumer:
        # given a producer and a consumer with a message in flight
        producer.identify(client_id="p", hostname="h", user_agent="test/1", topology_region="r", topology_zone="z")
        producer.publish("seen", b"one", b"two")
        consumer.identify(client_id="c")
        consumer.subscribe("seen", "c", 1)
        consumer.message()
        # then all of it is told
        found = web.get("/stats?format=json&topic=seen").json()
        assert set(found) == {"version", "health", "start_time", "topics", "memory", "producers"}
        assert (found["version"], found["health"]) == ("1.3.0", "OK")
        assert types(found["memory"]) == dict.fromkeys(MEMORY, int)
        assert found["memory"]["heap_in_use_bytes"] > 1 << 20
        topic = found["topics"][0]
        channel = topic["channels"][0]
        client = channel["clients"][0]
        made = found["producers"][0]
        assert (types(topic), types(channel), types(client)) == (TOPIC, CHANNEL, CLIENT)
        assert types(made) == CLIENT | {"pub_counts": list}
        assert (topic["message_count"], topic["message_bytes"]) == (2, 6)
        assert (channel["depth"], channel["in_flight_count"], channel["client_count"]) == (1, 1, 1)
        assert (client["client_id"], client["state"], client["ready_count"], client["message_count"]) == ("c", 3, 1, 1)
        assert (made["client_id"], made["hostname"], made["user_agent"]) == ("p", "h", "test/1")
        assert (made["topology_region"], made["topology_zone"]) == ("r", "z")
        assert made["pub_counts"] == [{"topic": "seen", "count": 2}]
        assert topic["e2e_processing_latency"] == {"count": 0, "percentiles": None}


def test_stats_are_filtered(web: Http, nsqd: Nsqd) -> None:
    for target in (
        "/topic/create?topic=f1", "/channel/create?topic=f1&channel=only-here", "/channel/create?topic=f1&channel=b",
        "/topic/create?topic=f2", "/channel/create?topic=f2&channel=b",
    ):  # fmt: skip
        web.post(target)

    def names(query: str) -> list[tuple[str, list[str]]]:
        topics = web.get(f"/stats?format=json{query}").json()["topics"]
        return [(topic["topic_name"], [channel["channel_name"] for channel in topic["channels"]]) for topic in topics]

    assert names("&topic=f1") == [("f1", ["b", "only-here"])]
    assert names("&topic=f1&channel=b") == [("f1", ["b"])]
    assert names("&channel=only-here") == [("f1", ["only-here"])]
    assert names("&topic=f2&channel=only-here") == []
    everything = [name for name, _ in names("")]
    assert everything == sorted(everything)
    assert {"f1", "f2"} <= set(everything)


def test_what_is_not_asked_for_or_not_there_is_null_as_in_nsq(web: Http, nsqd: Nsqd) -> None:
    with nsqd.client() as client:
        client.publish("nulls", b"m")
        client.subscribe("nulls", "c", 0)
        found = web.get("/stats?format=json&topic=nulls&include_clients=false&include_mem=0").json()
        assert "memory" not in found
        assert (found["producers"], found["topics"][0]["channels"][0]["clients"]) == (None, None)
        assert found["topics"][0]["channels"][0]["client_count"] == 1
        assert web.get("/stats?format=json&topic=nope").json()["topics"] is None
        # and a word that is neither yes nor no is a yes
        found = web.get("/stats?format=json&topic=nulls&include_clients=maybe").json()
        assert found["topics"][0]["channels"][0]["clients"]
        assert "memory" in found


def test_stats_as_text_are_nsqd_s_lines(web: Http, nsqd: Nsqd) -> None:
    with nsqd.client() as producer, nsqd.client() as consumer:
        producer.identify(hostname="h", user_agent="test/1")
        producer.publish("lines", b"1", b"2", b"3")
        consumer.subscribe("lines", "ch", 1)
        consumer.message()
        web.post("/channel/pause?topic=lines&channel=ch")
        answer = web.get("/stats?topic=lines")
        text = answer.body.decode()
        assert answer.headers["content-type"] == TEXT
        head, _, rest = text.partition("\n\nTopics:\n")
        assert head.startswith("nsqd v1.3.0 (")
        assert "\n\nHealth: OK\n\nMemory:\n   heap_objects             \t" in head
        topic, channel, client, *others = rest.splitlines()
        assert topic == "   [lines          ] depth: 0     be-depth: 0     msgs: 3        e2e%: "
        assert channel == (
            "   *P [ch                       ] depth: 2     be-depth: 2     inflt: 1    def: 0    re-q: 0     "
            "timeout: 0     msgs: 3        e2e%: "
        )
        assert client.startswith("        [V2 127.0.0.1:")
        assert "] state: 3 inflt: 1    rdy: 1    fin: 0        re-q: 0        msgs: 1        connected: " in client
        assert others[:2] == ["", "Producers:"]
        mine = next(line for line in others if "topics: lines=3 " in line)
        assert re.fullmatch(r"   \[V2 h:\d+ test/1 {3,}\] msgs: 3        topics: lines=3 connected: \d+s", mine)


def test_latency_is_shown_by_percentiles_where_they_are_asked_for(tmp_path: Path) -> None:
    flags = "--e2e-processing-latency-percentile=0.5,1", "--e2e-processing-latency-window-time=1h"
    nsqd = Nsqd(tmp_path, *flags)
    web = Http(nsqd.http)
    # given three messages, one of which is deferred and one given back, that are finished
    web.post("/mpub?topic=t", b"a\nb")
    web.post("/pub?topic=t&defer=200", b"c")
    with nsqd.client() as client:
        client.subscribe("t", "c", 1)
        client.send(b"REQ " + client.message().id + b" 0\n")
        for _ in range(3):
            client.finish(client.message())
        settle(client)
    # then the slowest took at least as long as that one was deferred, of the channel and of the topic
    topic = nsqd.stats()["topics"][0]
    for found in topic["e2e_processing_latency"], topic["channels"][0]["e2e_processing_latency"]:
        assert found["count"] == 3
        assert [each["quantile"] for each in found["percentiles"]] == [1, 0.5]
        slowest, half = (each["value"] for each in found["percentiles"])
        assert 190 * 10**6 < slowest < 20 * 10**9
        assert 0 < half <= slowest
    assert re.search(r"e2e%: [0-9.]+m?s, [0-9.]+[um]?s\n", web.get("/stats").body.decode())
    assert b'nsqd_channel_e2e_latency_seconds{topic="t",channel="c",quantile="0.5"} 0.' in web.get("/metrics").body
    web.close()
    assert nsqd.stop() == 0
    nsqd.assert_calm()


def test_a_node_without_topics_says_so_as_text(tmp_path: Path) -> None:
    nsqd = Nsqd(tmp_path)
    web = Http(nsqd.http)
    assert web.get("/stats?include_mem=false").body.endswith(b"\n\nHealth: OK\n\nTopics: None\n\nProducers: None\n")
    assert web.get("/stats?format=json").json()["topics"] == []
    web.close()
    assert nsqd.stop() == 0
    nsqd.assert_calm()


# --- config


def test_options_are_shown_as_nsqd_shows_them(web: Http, nsqd: Nsqd) -> None:
    assert web.get("/config/log_level").body == b"2"
    assert web.get("/config/msg_timeout").body == b"60000000000"
    assert web.get("/config/max_msg_size").body == str(MAX_MSG).encode()
    assert web.get("/config/nsqlookupd_tcp_addresses").body == b"[]"
    assert web.get("/config/deflate").body == b"true"
    words = web.get("/config/data_path")
    assert (words.body, words.headers["content-type"]) == (str(nsqd.folder).encode(), TEXT)
    assert web.get("/config/msg_timeout").headers["content-type"] == JSON
    for name in ("nope", "worker_id", "lookupd-tcp-address"):
        answer = web.get(f"/config/{name}")
        assert (answer.status, answer.message) == (400, "INVALID_OPTION")


def test_the_log_level_may_be_changed(web: Http, nsqd: Nsqd) -> None:
    # given a node that logs what it is asked
    web.get("/ping?before")
    # when it is told to log less, then more
    assert web.ask("PUT", "/config/log_level", b"WARN").body == b"3"
    assert web.get("/config/log_level").body == b"3"
    web.get("/ping?meanwhile")
    assert web.ask("PUT", "/config/log_level", b"info").body == b"2"
    web.get("/ping?after")
    # then it did
    nsqd.wait_for_line("/ping?after ")
    logged = "".join(nsqd.log)
    assert " INFO: 200 GET /ping?before (127.0.0.1:" in logged
    assert "/ping?meanwhile" not in logged


def test_the_lookups_may_be_changed(web: Http) -> None:
    addresses = b'["127.0.0.1:1","127.0.0.1:2"]'
    assert web.ask("PUT", "/config/nsqlookupd_tcp_addresses", addresses).body == addresses
    assert web.get("/config/nsqlookupd_tcp_addresses").body == addresses
    assert web.ask("PUT", "/config/nsqlookupd_tcp_addresses", b"[]").body == b"[]"


@pytest.mark.parametrize(
    ("name", "value", "status", "expected"),
    [
        ("log_level", b"", 413, "INVALID_VALUE"),
        ("log_level", b"x" * (MAX_MSG + 1), 413, "INVALID_VALUE"),
        ("log_level", b"loud", 400, "INVALID_VALUE"),
        ("log_level", b"\xff", 400, "INVALID_VALUE"),
        ("nsqlookupd_tcp_addresses", b"a:1", 400, "INVALID_VALUE"),
        ("nsqlookupd_tcp_addresses", b"{}", 400, "INVALID_VALUE"),
        ("nsqlookupd_tcp_addresses", b"[1]", 400, "INVALID_VALUE"),
        ("msg_timeout", b"1s", 400, "INVALID_OPTION"),
        ("nope", b"1", 400, "INVALID_OPTION"),
    ],
)
def test_what_an_option_cannot_be_is_refused(web: Http, name: str, value: bytes, status: int, expected: str) -> None:
    answer = web.ask("PUT", f"/config/{name}", value)
    assert (answer.status, answer.message) == (status, expected)


# --- debug


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    "path", ["/debug/pprof/", "/debug/pprof/goroutine", "/debug/pprof/profile", "/debug/freememory"]
)
def test_what_is_inside_is_nobody_s_business_unless_it_is_asked_for(web: Http, method: str, path: str) -> None:
    assert web.ask(method, path).status == 404


def test_what_is_inside_can_be_seen(tmp_path: Path) -> None:
    nsqd = Nsqd(tmp_path, "--debug-http")
    web = Http(nsqd.http)
    for line in web.get("/debug/pprof/").body.decode().splitlines():
        assert web.get(line.split()[0] + "?seconds=0").status in (200, 400)
    assert b"--debug-http" in web.get("/debug/pprof/cmdline").body
    stacks = web.get("/debug/pprof/goroutine").body
    assert b"thread MainThread\n" in stacks
    assert b"in serve" in stacks
    assert web.post("/debug/freememory").status == 200
    for seconds in ("0", "-1", "x", "301", "\u0661"):
        assert web.get(f"/debug/pprof/profile?seconds={quote(seconds)}").message == "INVALID_SECONDS"
    # given a profile that takes long, another one is refused
    other = Http(nsqd.http)
    other.get("/ping")
    other.send("GET", "/debug/pprof/profile?seconds=300")
    answer = web.get("/debug/pprof/profile?seconds=1")
    assert (answer.status, answer.message) == (409, "PROFILE_IN_PROGRESS")
    nsqd.kill()
    other.close()
    web.close()


def test_a_profile_says_where_the_loop_was(tmp_path: Path) -> None:
    nsqd = Nsqd(tmp_path, "--debug-http")
    web = Http(nsqd.http)
    lines = web.get("/debug/pprof/profile?seconds=1").body.decode().splitlines()
    assert sum(int(line.rpartition(" ")[2]) for line in lines) > 10
    assert any("penstock.daemon.program._run;" in line for line in lines)
    web.close()
    assert nsqd.stop() == 0
