"""nsqd and nsqlookupd together: what is registered, what is made on a new topic, and who comes back after what."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.integration.daemon import Daemon, Nsqd, Nsqlookupd
from tests.integration.http_client import Http


class Cluster:
    """Daemons of one test, all on loopback."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._daemons: list[Daemon] = []

    def lookupd(self, *flags: str) -> Nsqlookupd:
        lookupd = Nsqlookupd("--broadcast-address=127.0.0.1", *flags)
        self._daemons.append(lookupd)
        return lookupd

    def nsqd(self, *lookupds: Nsqlookupd, flags: tuple[str, ...] = ()) -> Nsqd:
        folder = self._folder / f"{len(self._daemons)}"
        folder.mkdir()
        addresses = [f"--lookupd-tcp-address=127.0.0.1:{each.tcp}" for each in lookupds]
        nsqd = Nsqd(folder, "--broadcast-address=127.0.0.1", *addresses, *flags)
        self._daemons.append(nsqd)
        return nsqd

    def end(self) -> None:
        for daemon in self._daemons:
            if daemon.process.poll() is None:
                assert daemon.stop() == 0
        for daemon in self._daemons:
            daemon.assert_calm()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.end()


def test_what_a_node_has_is_known_to_each_nsqlookupd(cluster: Cluster) -> None:
    # given a node that has topics when it starts, and two nsqlookupd
    first, second = cluster.lookupd(), cluster.lookupd()
    nsqd = cluster.nsqd(first, second, flags=("--broadcast-tcp-port=5", "--topology-zone=z"))
    with nsqd.client() as client:
        # when a topic is published to, and a channel subscribed
        client.publish("t", b"m")
        client.subscribe("t", "c", 0)
        for lookupd in first, second:
            lookupd.wait_for_producers("t", 5)
            (node,) = lookupd.get("/nodes")["producers"]
            assert (node["broadcast_address"], node["http_port"]) == ("127.0.0.1", nsqd.http)
            assert (node["version"], node["topology_zone"], node["topics"]) == ("1.3.0", "z", ["t"])
    # and when they are deleted, then that is known
    with closing(Http(nsqd.http)) as http:
        assert http.post("/topic/delete?topic=t").status == 200
    for lookupd in first, second:
        lookupd.wait_for_producers("t")
        assert lookupd.get("/lookup?topic=t") == {"channels": ["c"], "producers": []}
    # and what is ephemeral is forgotten
    with nsqd.client() as client:
        client.subscribe("u", "e#ephemeral", 0)
        first.wait_for_producers("u", 5)
    nsqd.wait_for_line("UNREGISTER u e#ephemeral")
    with closing(Http(nsqd.http)) as http:
        http.post("/topic/delete?topic=u")  # behind it
    first.wait_for_producers("u")
    assert first.get("/channels?topic=u") == {"channels": []}


def test_an_nsqlookupd_that_was_killed_is_told_everything_when_it_is_back(cluster: Cluster) -> None:
    lookupd = cluster.lookupd()
    nsqd = cluster.nsqd(lookupd)
    with nsqd.client() as client:
        client.subscribe("t", "c", 0)
        lookupd.wait_for_producers("t", nsqd.tcp)
        lookupd.kill()
        # what happens meanwhile
        client.publish("u", b"m")
        lookupd.start_again()
        for topic in "t", "u":
            lookupd.wait_for_producers(topic, nsqd.tcp)
        assert lookupd.get("/channels?topic=t") == {"channels": ["c"]}


def test_a_node_that_was_killed_is_gone_at_once_and_back_with_what_it_had(cluster: Cluster) -> None:
    lookupd = cluster.lookupd()
    nsqd = cluster.nsqd(lookupd)
    with nsqd.client() as client:
        client.publish("t", b"m")
    lookupd.wait_for_producers("t", nsqd.tcp)
    nsqd.kill()
    lookupd.wait_for_producers("t")
    nsqd.start()
    lookupd.wait_for_producers("t", nsqd.tcp)
    # and one that stops takes itself back before it is gone
    nsqd.stop()
    lookupd.wait_for_producers("t")


def test_a_new_topic_has_the_channels_that_it_has_elsewhere(cluster: Cluster) -> None:
    first, second = cluster.lookupd(), cluster.lookupd()
    # given channels of a topic that only one or the other nsqlookupd knows
    for lookupd, channel in ((first, "c"), (second, "d"), (second, "e%23ephemeral")):
        with closing(Http(lookupd.http)) as http:
            assert http.post(f"/channel/create?topic=t&channel={channel}").status == 200
    nsqd = cluster.nsqd(first, second)
    with nsqd.client() as client:
        # when it is published to at a node that has never had it
        assert client.publish("t", b"a") == b"OK"
        assert client.publish("t", b"b") == b"OK"
        # then they get all of it
        client.subscribe("t", "c", 10)
        assert [client.message().body, client.message().body] == [b"a", b"b"]
        assert nsqd.channel("t", "d")["depth"] == 2
        (topic,) = nsqd.stats()["topics"]
        assert [channel["channel_name"] for channel in topic["channels"]] == ["c", "d"]


class Mute:
    """An nsqlookupd that says who it is, and whose HTTP takes requests and never answers."""

    def __init__(self) -> None:
        self._tcp, self._http = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))
        self.tcp = self._tcp.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        about = {
            "broadcast_address": "127.0.0.1",
            "http_port": self._http.getsockname()[1],
            "tcp_port": 1,
            "version": "1",
        }
        body = json.dumps(about).encode()
        with suppress(OSError):
            connection, _ = self._tcp.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(len(body).to_bytes(4, "big") + body)
                while data := connection.recv(1 << 16):
                    connection.sendall(b"\0\0\0\2OK" * data.count(b"\n"))

    def close(self) -> None:
        for each in self._tcp, self._http:
            each.close()


def test_an_nsqlookupd_that_does_not_answer_holds_nobody_up_for_long(cluster: Cluster) -> None:
    with closing(Mute()) as mute:
        nsqd = cluster.nsqd(flags=(f"--lookupd-tcp-address=127.0.0.1:{mute.tcp}", "--http-client-request-timeout=1s"))
        nsqd.wait_for_line("peer info")
        with nsqd.client() as client:
            begun = time.monotonic()
            assert client.publish("t", b"m") == b"OK"
            client.subscribe("t", "c", 1)
            assert time.monotonic() - begun < 0.9
            assert client.message().body == b"m"
            assert time.monotonic() - begun > 0.9
        nsqd.wait_for_line("channels of the new topic t are not known: no answer in time")


def test_an_nsqlookupd_that_is_not_there_holds_nobody_up(cluster: Cluster) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    nsqd = cluster.nsqd(flags=(f"--lookupd-tcp-address=127.0.0.1:{port}",))
    nsqd.wait_for_line("ERROR: LOOKUPD")
    with nsqd.client() as client:
        client.publish("t", b"m")
        client.subscribe("t", "c", 1)
        assert client.message().body == b"m"
    nsqd.wait_for_line("channels of the new topic t are not known: not available")


def test_a_look_up_that_a_kill_ended_goes_on_with_the_next_start(cluster: Cluster) -> None:
    # given a node that is killed while it looks up the channels of a topic that has one
    with closing(Mute()) as mute:
        nsqd = cluster.nsqd(flags=(f"--lookupd-tcp-address=127.0.0.1:{mute.tcp}",))
        nsqd.wait_for_line("peer info")
        with nsqd.client() as client:
            client.publish("t", b"m")
            client.subscribe("t", "c", 0)
            nsqd.kill()
    # when it starts and finds an nsqlookupd that knows of another
    lookupd = cluster.lookupd()
    with closing(Http(lookupd.http)) as http:
        http.post("/channel/create?topic=t&channel=d")
    nsqd.start(f"--lookupd-tcp-address=127.0.0.1:{lookupd.tcp}")
    nsqd.wait_for_line("TOPIC(t): new channel(d)")
    # then both have the message
    with nsqd.client() as client:
        client.subscribe("t", "d", 1)
        assert client.message().body == b"m"
    assert nsqd.channel("t", "c")["depth"] == 1


def test_addresses_can_be_changed_while_it_runs(cluster: Cluster) -> None:
    first, second = cluster.lookupd(), cluster.lookupd()
    nsqd = cluster.nsqd(first)
    with nsqd.client() as client:
        client.publish("t", b"m")
    first.wait_for_producers("t", nsqd.tcp)
    with closing(Http(nsqd.http)) as http:
        assert "nsqd_lookupd_registered" in http.get("/metrics").body.decode()
        put = "/config/nsqlookupd_tcp_addresses"
        assert http.ask("PUT", put, b'["127.0.0.1:%d"]' % second.tcp).status == 200
        second.wait_for_producers("t", nsqd.tcp)
        first.wait_for_producers("t")
        assert f'nsqd_lookupd_registered{{address="127.0.0.1:{second.tcp}"}} 1' in http.get("/metrics").body.decode()
        assert http.ask("PUT", put, b"[]").status == 200
        second.wait_for_producers("t")
        assert http.ask("PUT", put, b'["a:b:c"]').message == "INVALID_VALUE"


def test_a_consumer_that_waits_learns_of_a_new_node_within_100_ms(cluster: Cluster) -> None:
    lookupd = cluster.lookupd()
    nsqds = [cluster.nsqd(lookupd) for _ in range(3)]
    took = []
    with closing(Http(lookupd.http)) as http:
        since = http.get("/lookup?topic=t").headers["x-penstock-revision"]
        for count, nsqd in enumerate(nsqds, start=1):
            with nsqd.client() as client:
                http.send("GET", f"/lookup?topic=t&wait=30s&since={since}")
                begun = time.monotonic()
                client.publish("t", b"m")
                answer = http.answer()
                took.append(time.monotonic() - begun)
                since = answer.headers["x-penstock-revision"]
                while len(answer.json()["producers"]) < count:  # known, but without a producer yet
                    answer = http.get(f"/lookup?topic=t&wait=30s&since={since}")
                    since = answer.headers["x-penstock-revision"]
    assert min(took) < 0.1


@pytest.mark.parametrize("code", [pytest.param("ANSQ", id="ansq"), pytest.param("OURS", id="penstock")])
def test_consumers_of_others_and_our_own_find_all_nodes(cluster: Cluster, code: str) -> None:
    # given two nodes with messages, and an nsqlookupd that knows both
    lookupd = cluster.lookupd()
    nsqds = [cluster.nsqd(lookupd) for _ in range(2)]
    for number, nsqd in enumerate(nsqds):
        with nsqd.client() as client:
            assert client.publish("tt", b"%d" % number) == b"OK"
    lookupd.wait_for_producers("tt", *(nsqd.tcp for nsqd in nsqds))
    # when a consumer that was told of nsqlookupd alone consumes, then it gets what both have
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CONSUMERS[code], f"127.0.0.1:{lookupd.http}"],
        stdout=subprocess.PIPE, text=True, timeout=30, check=True,
    )  # fmt: skip
    assert sorted(done.stdout.split()) == ["0", "1"]
    assert [nsqd.channel("tt", "cc")["depth"] for nsqd in nsqds] == [0, 0]


CONSUMERS = {  # names of one letter are none to ansq
    "ANSQ": """
import asyncio, sys
from ansq import create_reader
async def main():
    reader = await create_reader(topic="tt", channel="cc", lookupd_http_addresses=[sys.argv[1]])
    count = 0
    async for message in reader.messages():
        print(message.body.decode())
        await message.fin()
        count += 1
        if count == 2:
            break
    await reader.close()
asyncio.run(main())
""",
    "OURS": """
import asyncio, sys
from penstock.client import Consumer
async def main():
    count = 0
    async with Consumer("tt", "cc", lookupd=sys.argv[1]) as consumer:
        async for message in consumer:
            print(message.body.decode())
            await message.finish()
            count += 1
            if count == 2:
                break
asyncio.run(main())
""",
}


@pytest.mark.slow
def test_pynsq_gets_every_message_while_daemons_come_and_go(cluster: Cluster) -> None:
    # given three nodes, two nsqlookupd, and a consumer that knows only of these
    lookupds = [cluster.lookupd(), cluster.lookupd()]
    nsqds = [cluster.nsqd(*lookupds) for _ in range(3)]
    consumer = subprocess.Popen(
        [sys.executable, "-c", CONSUMER, *(f"127.0.0.1:{each.http}" for each in lookupds)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert consumer.stdout is not None
    sent: list[str] = []

    def publish(nsqd: Nsqd) -> None:
        with nsqd.client() as client:
            for _ in range(100):
                sent.append(str(len(sent)))
                assert client.publish("t", sent[-1].encode()) == b"OK"

    def all_come() -> None:
        missing = set(sent)
        while missing:
            line = consumer.stdout.readline()  # type: ignore[union-attr]
            assert line, f"the consumer ended, {len(missing)} messages are missing"
            missing.discard(line.strip())
        sent.clear()

    changes: list[Callable[[], object]] = [
        nsqds[0].kill,
        lookupds[0].kill,
        nsqds[0].start,
        lookupds[0].start_again,
        lambda: nsqds.append(cluster.nsqd(*lookupds)),
        lookupds[1].kill,
        lambda: None,
    ]
    try:
        for change in changes:
            for nsqd in nsqds:
                if nsqd.process.poll() is None:
                    publish(nsqd)
            all_come()
            change()
    finally:
        consumer.kill()
        consumer.wait()
        consumer.stdout.close()


CONSUMER = """
import sys, nsq
def take(message):
    print(message.body.decode(), flush=True)
    return True
nsq.Reader("t", "c", take, lookupd_http_addresses=sys.argv[1:], lookupd_poll_interval=1, lookupd_poll_jitter=0.0,
    max_in_flight=50)
nsq.run()
"""
