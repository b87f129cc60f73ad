"""nsqd as its users meet it: a process, sockets, signals, restarts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.client import Client
from tests.integration.daemon import Nsqd


@pytest.fixture
def nsqd(tmp_path: Path) -> Iterator[Nsqd]:
    daemon = Nsqd(tmp_path)
    yield daemon
    if daemon.process.poll() is None:
        assert daemon.stop() == 0
    daemon.assert_calm()


def drain(client: Client, count: int) -> list[bytes]:
    """Take and finish so many messages; the last FIN is known to have arrived when this returns."""
    bodies = []
    for _ in range(count):
        message = client.message()
        client.finish(message)
        bodies.append(message.body)
    settle(client)
    return bodies


def settle(client: Client) -> None:
    """All that was sent before is carried out."""
    assert client.ask("FIN 0000000000000000").startswith(b"E_FIN_FAILED")


def test_what_is_published_is_delivered_and_finished(nsqd: Nsqd) -> None:
    with nsqd.client() as client:
        assert client.identify(client_id="c")["version"] == "1.3.0"
        assert client.publish("t", b"one") == b"OK"
        assert client.publish("t", b"two", b"three") == b"OK"
        client.subscribe("t", "c", 10)
        assert drain(client, 3) == [b"one", b"two", b"three"]
        channel = nsqd.channel("t", "c")
        assert (channel["depth"], channel["in_flight_count"], channel["message_count"]) == (0, 0, 3)
        assert channel["clients"][0]["finish_count"] == 3


def test_requeue_touch_and_attempts(nsqd: Nsqd) -> None:
    with nsqd.client() as client:
        client.publish("t", b"m")
        client.subscribe("t", "c", 1)
        first = client.message()
        client.send(b"TOUCH " + first.id + b"\nREQ " + first.id + b" 0\n")
        second = client.message()
        assert (second.id, second.body, second.attempts) == (first.id, b"m", 2)
        assert second.timestamp == first.timestamp
        client.finish(second)
        assert (
            client.ask(f"FIN {first.id.decode()}")
            == f"E_FIN_FAILED FIN {first.id.decode()} failed ID not in flight".encode()
        )


def test_a_consumer_gets_all_that_it_asked_for_before_it_finishes_any(nsqd: Nsqd) -> None:
    with nsqd.client() as client:
        for number in range(8):
            client.publish("t", b"%d" % number * 500_000)
        client.subscribe("t", "c", 8)
        assert [client.message().body[:1] for _ in range(8)] == [b"%d" % number for number in range(8)]


def test_every_channel_gets_every_message(nsqd: Nsqd) -> None:
    with nsqd.client() as one, nsqd.client() as other:
        one.subscribe("t", "one", 10)
        other.subscribe("t", "other", 10)
        with nsqd.client() as producer:
            producer.publish("t", b"1", b"2")
        assert drain(one, 2) == drain(other, 2) == [b"1", b"2"]


def test_a_deferred_message_keeps_its_delay_over_a_restart(tmp_path: Path) -> None:
    nsqd = Nsqd(tmp_path)
    with nsqd.client() as client:
        assert client.ask("DPUB t 1500", b"later") == b"OK"
    nsqd.kill()
    nsqd.start()
    with nsqd.client() as client:
        client.subscribe("t", "c", 1)
        client.publish("t", b"now")
        assert client.message().body == b"now"
        settle(client)
        assert client.messages == []
        client.send(b"RDY 2\n")
        later = client.message()
        assert (later.body, later.attempts) == (b"later", 1)
    assert nsqd.stop() == 0
    nsqd.assert_calm()


def test_a_clean_restart_keeps_channels_attempts_and_pauses(tmp_path: Path) -> None:
    nsqd = Nsqd(tmp_path)
    with nsqd.client() as client:
        client.publish("t", b"1", b"2", b"3")
        client.subscribe("t", "c", 2)
        held = client.message()
        client.finish(client.message())
        settle(client)
    assert nsqd.stop() == 0
    nsqd.start()
    assert nsqd.channel("t", "c")["depth"] == 2
    with nsqd.client() as client:
        client.subscribe("t", "c", 5)
        found = {message.body: message for message in (client.message(), client.message())}
        assert found[held.body].attempts == 2
        assert found[held.body].id == held.id
        assert found[held.body].timestamp == held.timestamp
        assert set(found) == {b"3", held.body}
    assert nsqd.stop() == 0
    nsqd.assert_calm()


@pytest.mark.parametrize("seed", range(3))
def test_nothing_answered_ok_is_lost_to_kill_9(tmp_path: Path, seed: int) -> None:
    # given messages that were answered, some of them taken, some finished
    rng = random.Random(seed)
    nsqd = Nsqd(tmp_path)
    published: list[bytes] = []
    finished: set[bytes] = set()
    for life in range(4):
        with nsqd.client() as producer, nsqd.client() as consumer:
            consumer.subscribe("t", "c", rng.choice([1, 50]))
            for batch in range(rng.randint(1, 40)):
                bodies = [b"%d-%d-%d" % (life, batch, number) for number in range(rng.randint(1, 30))]
                assert producer.publish("t", *bodies) == b"OK"
                published += bodies
            for _ in range(rng.randint(0, 10)):
                message = consumer.message()
                consumer.finish(message)
                finished.add(message.body)
            # when it is killed in the middle
            nsqd.kill()
        nsqd.start()
    # then all of it is still there; what was finished last may come once more
    with nsqd.client() as consumer:
        consumer.subscribe("t", "c", 2500)
        depth = nsqd.channel("t", "c")
        left = depth["depth"] + depth["in_flight_count"]
        found = drain(consumer, left)
        assert len(set(found)) == len(found) == left
        assert set(found) | finished == set(published)
    assert nsqd.stop() == 0
    nsqd.assert_calm()


def test_a_second_nsqd_on_the_same_folder_is_refused(nsqd: Nsqd) -> None:
    with pytest.raises(AssertionError, match="in use by another process"):
        Nsqd(nsqd.folder)


def test_an_unfinished_message_comes_again_when_its_consumer_goes(nsqd: Nsqd) -> None:
    with nsqd.client() as client:
        client.publish("t", b"m")
        client.subscribe("t", "c", 1)
        assert client.message().attempts == 1
    with nsqd.client() as other:
        other.subscribe("t", "c", 1)
        assert other.message().attempts == 2


def test_pipelined_commands_are_answered_in_order(nsqd: Nsqd) -> None:
    with nsqd.client() as client:
        pub = b"PUB t\n\x00\x00\x00\x01x"
        client.send(pub * 500 + b"SUB t c\nRDY 5\nSUB t d\n")
        assert [client.answer() for _ in range(501)] == [b"OK"] * 501
        assert client.answer() == b"E_INVALID cannot SUB in current state"
        with pytest.raises(EOFError):
            client.until_it_ends()


def test_an_ephemeral_channel_goes_with_its_last_consumer(nsqd: Nsqd) -> None:
    with nsqd.client() as client:
        client.subscribe("t", "c#ephemeral", 1)
        assert [c["channel_name"] for c in nsqd.stats()["topics"][0]["channels"]] == ["c#ephemeral"]
        client.ask("CLS")
    with nsqd.client() as client:
        client.identify()
        assert nsqd.stats()["topics"][0]["channels"] == []
