"""Very many connections, topics and deferred messages: what each costs, and that nobody waits for the others."""

from __future__ import annotations

import http.client
import itertools
import socket
import statistics
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.integration.client import Client
from tests.integration.crowd import Crowd
from tests.integration.daemon import Nsqd

KIB = 1024
MANY = pytest.mark.slow
OK = struct.pack(">II", 6, 0) + b"OK"
BURST = 1000  # deferred messages that are sent together


@pytest.fixture
def nsqd(tmp_path: Path) -> Iterator[Nsqd]:
    daemon = Nsqd(tmp_path)
    yield daemon
    if daemon.process.poll() is None:
        assert daemon.stop() == 0
    daemon.assert_calm()


@pytest.mark.parametrize(("count", "beat"), [(1000, 1.0), pytest.param(10_000, 5.0, marks=MANY)])
def test_idle_consumers_are_cheap_and_each_is_reached_at_once(nsqd: Nsqd, count: int, beat: float) -> None:
    before = nsqd.resident()
    with nsqd.client() as producer, Crowd(nsqd.tcp, count, "t", "c", int(beat * 1000)) as crowd:
        # given many that wait
        crowd.listen_for(2.5 * beat)
        each = (nsqd.resident() - before) / count
        # then none costs much, and its heartbeats are in time
        assert each < 20 * KIB
        late = [gap - beat for beats in crowd.beats.values() for gap in gaps(beats)]
        assert len(late) >= count
        assert max(map(abs, late)) < beat / 2
        assert min(map(len, crowd.beats.values())) >= 2
        # when something is published, then one of them has it at once
        waits = []
        for number in range(200):
            start = time.monotonic()
            assert producer.publish("t", b"%d" % number) == b"OK"
            crowd.listen(lambda: len(crowd.arrivals) > number, 10)  # noqa: B023
            arrival = crowd.arrivals[number]
            waits.append(arrival.at - start)
            crowd.finish(arrival)
        assert statistics.median(waits) < 0.010
        assert nsqd.channel("t", "c")["client_count"] == count


def gaps(times: list[float]) -> list[float]:
    return [later - earlier for earlier, later in itertools.pairwise(times)]


@pytest.mark.parametrize(
    ("count", "of_topic", "of_channel"), [(500, 8 * KIB, 3 * KIB), pytest.param(10_000, 6 * KIB, 2 * KIB, marks=MANY)]
)
def test_idle_topics_and_channels_are_cheap_and_soon_there_at_start(
    nsqd: Nsqd, count: int, of_topic: int, of_channel: int
) -> None:
    empty = memory_after_a_restart(nsqd)
    # given many topics, then a channel on each
    post(nsqd, (f"/topic/create?topic=t{number}" for number in range(count)))
    topics = memory_after_a_restart(nsqd)
    post(nsqd, (f"/channel/create?topic=t{number}&channel=c" for number in range(count)))
    # when it starts with all of them
    start = time.monotonic()
    channels = memory_after_a_restart(nsqd)
    took = time.monotonic() - start
    # then it is soon there, and they cost little
    assert nsqd.channel(f"t{count - 1}", "c")["depth"] == 0
    assert took < 3
    assert (topics - empty) / count < of_topic
    assert (channels - topics) / count < of_channel
    nsqd.kill()


def memory_after_a_restart(nsqd: Nsqd) -> int:
    nsqd.kill()
    nsqd.start()
    nsqd.stats("&topic=t")
    return nsqd.resident()


def post(nsqd: Nsqd, paths: Iterator[str]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", nsqd.http, timeout=30)
    for path in paths:
        connection.request("POST", path)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200
    connection.close()


@pytest.mark.parametrize(("count", "ahead"), [(20_000, 3.0), pytest.param(1_000_000, 60.0, marks=MANY)])
def test_many_that_are_due_at_once_come_in_time_and_hold_up_nobody(nsqd: Nsqd, count: int, ahead: float) -> None:
    # given many messages that become due within a second
    with nsqd.client() as client:
        client.subscribe("late", "c", 0)
    due = time.time() + ahead
    defer(nsqd, "late", count, due)
    assert time.time() < due - 0.5
    assert nsqd.channel("late", "c")["deferred_count"] == count
    # when their time comes, while one watches them, and others publish and consume
    margins: list[float] = []
    waits: list[float] = []
    with beside(partial(watch, nsqd.client(timeout=ahead + 20), margins), partial(ping_pong, nsqd.client(), waits)):
        routed = routed_at(nsqd, count, due + 20)
    # then none came early, all were routed soon, and the others did not feel it
    assert margins
    assert min(margins) >= 0
    assert routed < due + 1 + 2
    assert statistics.quantiles(waits, n=100)[98] < 0.020


def defer(nsqd: Nsqd, topic: str, count: int, due: float) -> None:
    """So many messages whose time comes within the second after `due`; each says when."""
    with socket.create_connection(("127.0.0.1", nsqd.tcp), timeout=30) as connection:
        answers = connection.makefile("rb")
        connection.sendall(b"  V2")
        for first in range(0, count, BURST):
            now = time.time()
            delay = int((due - now + first / count) * 1000) + 1
            command = f"DPUB {topic} {delay}\n".encode() + struct.pack(">Id", 8, now + delay / 1000)
            connection.sendall(command * BURST)
            assert answers.read(len(OK) * BURST) == OK * BURST
        answers.close()


def routed_at(nsqd: Nsqd, count: int, deadline: float) -> float:
    pace = threading.Event()
    while time.time() < deadline:
        if nsqd.channel("late", "c")["message_count"] == count:
            return time.time()
        pace.wait(0.02)
    raise AssertionError(f"not all were routed: {nsqd.channel('late', 'c')}")


@contextmanager
def beside(*roles: Callable[[threading.Event], None]) -> Iterator[None]:
    """Each on a thread, until the block ends."""
    ended = threading.Event()
    threads = [threading.Thread(target=role, args=(ended,)) for role in roles]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join(timeout=20)


def watch(client: Client, margins: list[float], ended: threading.Event) -> None:
    """How long after its time each message comes."""
    with client:
        client.subscribe("late", "c", 1)
        while not ended.is_set():
            message = client.message()
            margins.append(time.time() - struct.unpack(">d", message.body)[0])
            client.finish(message)


def ping_pong(client: Client, waits: list[float], ended: threading.Event) -> None:
    with client:
        client.subscribe("other", "c", 1)
        while not ended.is_set():
            start = time.monotonic()
            client.publish("other", b"m")
            client.finish(client.message())
            waits.append(time.monotonic() - start)
