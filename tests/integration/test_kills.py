"""`kill -9` of nsqd, under load and between what users ask for: nothing answered is lost, little comes twice."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from tests.integration.daemon import Nsqd
from tests.integration.load import TOPIC, Consumed, Published, under_load

SYNC_TIMEOUT = 0.2
LATE = 0.5  # how late a tick may be on a busy machine


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_under_load_nothing_is_lost_and_only_the_latest_comes_again(tmp_path: Path, kills: int) -> None:
    # given publishers and two channels, and an nsqd that is killed again and again
    nsqd = Nsqd(tmp_path, f"--sync-timeout={SYNC_TIMEOUT}s")
    published, channels = Published(), [Consumed("one"), Consumed("other")]
    for channel in channels:
        with nsqd.client() as client:
            client.subscribe(TOPIC, channel.channel, 0)
    consumers = [channel.consume for channel in channels for _ in range(2)]
    began = [time.monotonic()] * 2  # how the life before ended: when it was killed, when all knew
    for _ in range(kills):
        with under_load(nsqd, published.publish, published.publish, *consumers):
            channels[0].go_on_for(1.2)
            killed = time.monotonic()
            nsqd.kill()
        assert_only_the_latest_came_again(channels, *began)
        began = [killed, time.monotonic()]
        nsqd.start()
    # when the last one lives on
    with under_load(nsqd, *consumers):
        for channel in channels:
            channel.await_all(published.ok, patience=60)
        assert nsqd.stop() == 0
    # then all that was answered came on both channels, and nothing that was not sent
    assert_only_the_latest_came_again(channels, *began)
    for channel in channels:
        assert published.ok <= channel.seen <= published.sent
        assert len(channel.finished) > 100 * kills
    nsqd.assert_calm()


def assert_only_the_latest_came_again(channels: list[Consumed], killed: float, ended: float) -> None:
    """Finished in the life before, and not longer before its end than the journal may lag behind."""
    for channel in channels:
        again, channel.again = channel.again, []
        too_late = [number for number, at in again if not killed - SYNC_TIMEOUT - LATE <= at <= ended]
        assert too_late == []


# --- what users ask for, a kill behind and amid every step

State = dict[str, tuple[int, dict[str, int]]]  # by topic: its depth, and the depth of each channel

STEPS: list[tuple[str, bytes, State]] = [
    ("topic/create?topic=t", b"", {"t": (0, {})}),
    ("pub?topic=t", b"a", {"t": (1, {})}),
    ("channel/create?topic=t&channel=c", b"", {"t": (0, {"c": 1})}),
    ("mpub?topic=t", b"b\nb", {"t": (0, {"c": 3})}),
    ("channel/empty?topic=t&channel=c", b"", {"t": (0, {"c": 0})}),
    ("channel/delete?topic=t&channel=c", b"", {"t": (0, {})}),
    ("pub?topic=t", b"c", {"t": (1, {})}),
    ("topic/empty?topic=t", b"", {"t": (0, {})}),
    ("channel/create?topic=t&channel=c", b"", {"t": (0, {"c": 0})}),
    ("topic/delete?topic=t", b"", {}),
    ("pub?topic=t", b"d", {"t": (1, {})}),
    ("channel/create?topic=t&channel=c", b"", {"t": (0, {"c": 1})}),
]


def request(step: int) -> bytes:
    what, body, _ = STEPS[step]
    return f"POST /{what} HTTP/1.1\r\nHost: t\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def carry_out(nsqd: Nsqd, step: int) -> None:
    with socket.create_connection(("127.0.0.1", nsqd.http), timeout=10) as connection:
        connection.sendall(request(step))
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")


def state(nsqd: Nsqd) -> State:
    return {
        topic["topic_name"]: (topic["depth"], {c["channel_name"]: c["depth"] for c in topic["channels"]})
        for topic in nsqd.stats()["topics"]
    }


def kill_amid(nsqd: Nsqd, step: int) -> None:
    """The kill comes before the answer."""
    with socket.create_connection(("127.0.0.1", nsqd.http), timeout=10) as connection:
        connection.sendall(request(step))
        nsqd.kill()
    nsqd.start()


def may_stand(step: int) -> tuple[State, ...]:
    """After a kill amid the step: before it or behind it; a first publish makes its topic, and then publishes."""
    before, (what, _, then) = STEPS[step - 1][2] if step else {}, STEPS[step]
    made: State = {"t": (0, {})}
    return (before, made, then) if what.startswith("pub") and not before else (before, then)


def test_killed_amid_every_step_it_stands_before_or_behind_it(tmp_path: Path) -> None:
    nsqd = Nsqd(tmp_path)
    for step, (_, _, then) in enumerate(STEPS):
        kill_amid(nsqd, step)
        found = state(nsqd)
        assert found in may_stand(step)
        if found != then:
            carry_out(nsqd, step)
    nsqd.kill()
    nsqd.start()
    assert_at_the_end(nsqd)


def assert_at_the_end(nsqd: Nsqd) -> None:
    assert state(nsqd) == STEPS[-1][2]
    with nsqd.client() as client:
        client.subscribe("t", "c", 10)
        assert client.message().body == b"d"
    assert nsqd.stop() == 0
    nsqd.assert_calm()


@pytest.mark.slow
@pytest.mark.parametrize("step", range(len(STEPS)), ids=lambda step: f"{step}-{STEPS[step][0].partition('?')[0]}")
def test_killed_behind_or_amid_a_step_it_stands_before_or_behind_it(tmp_path: Path, step: int) -> None:
    # given all steps before
    nsqd = Nsqd(tmp_path)
    for before in range(step):
        carry_out(nsqd, before)
    expected = STEPS[step - 1][2] if step else {}
    nsqd.kill()
    nsqd.start()
    assert state(nsqd) == expected
    # when it is killed before it answers the next one
    kill_amid(nsqd, step)
    # then it was carried out, or not at all, and goes on from there
    found = state(nsqd)
    assert found in may_stand(step)
    for after in range(step + (found == STEPS[step][2]), len(STEPS)):
        carry_out(nsqd, after)
    nsqd.kill()
    nsqd.start()
    assert_at_the_end(nsqd)
