"""A connection between a socket that a test stands for and its session: when it is read, and when not."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from penstock.nsqd.connection import Connection
from penstock.stream.doors import Burden
from tests.unit.nsqd.talk import Desk, pub


class Counter(Desk):
    """What connections need of a service beside what their sessions do."""

    def __init__(self) -> None:
        super().__init__()
        self.burden = Burden(0)
        self.connections: set[Connection] = set()
        self.resting: list[Connection] = []
        self.sending: dict[Connection, None] = {}

    def begin_turn(self) -> None:
        """Each read is a turn here."""

    doors = None

    def admit(self, session: object) -> None:
        """Everybody may come."""

    def release(self, session: object) -> None:
        """And go."""

    def outgoing(self, connection: Any) -> None:
        self.sending[connection] = None

    def rest(self, connection: Connection) -> None:
        self.resting.append(connection)

    def wake(self) -> None:
        resting, self.resting = self.resting, []
        for connection in resting:
            connection.rested()

    def turn(self) -> None:
        super().turn()
        while self.sending:
            self.sending.popitem()[0].flush()


class Socket:
    """A transport whose other end is the test."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self.reading = True
        self.sent = b""
        self.connection = Connection(counter)  # type: ignore[arg-type]
        self.connection.connection_made(self)  # type: ignore[arg-type]
        self.say(b"  V2")

    def say(self, data: bytes) -> None:
        """One read of the server."""
        room = memoryview(self.connection.get_buffer(-1))
        room[: len(data)] = data
        self.connection.buffer_updated(len(data))
        self._counter.turn()

    def ids(self) -> list[bytes]:
        """Of the messages that came since this was asked last."""
        sent, self.sent, found = self.sent, b"", []
        while sent:
            size, kind = struct.unpack_from(">II", sent)
            found += [sent[18:34]] if kind == 2 else []
            sent = sent[4 + size :]
        return found

    # --- what a connection asks of it

    def write(self, data: bytes) -> None:
        self.sent += data

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str) -> object:
        return ("10.0.0.1", 5000)

    def set_write_buffer_limits(self, high: int) -> None:
        pass

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


def consumer(counter: Counter, ready: int, messages: int) -> Socket:
    """A consumer that has these messages in flight."""
    client = Socket(counter)
    client.say(b"SUB t c\nRDY %d\n" % ready)
    client.say(pub("t", b"m") * messages)
    return client


def test_a_consumer_gets_all_that_it_asked_for_however_many_bytes_one_turn_gives() -> None:
    # given messages of 3 MB in all
    counter = Counter()
    producer, client = Socket(counter), Socket(counter)
    for _ in range(60):
        for at in range(0, len(message := pub("t", bytes(50_000))), 16_000):
            producer.say(message[at : at + 16_000])
    # when a client asks for all of them, and its socket takes what it is given at once
    client.say(b"SUB t c\nRDY 60\n")
    for _ in range(5):
        counter.turn()
    # then it has them, though it finished none
    assert len(client.ids()) == 60


def test_a_busy_consumer_that_finishes_one_by_one_is_not_read_for_a_moment() -> None:
    # given a consumer that asks for many messages at a time and has a hundred
    counter = Counter()
    client = consumer(counter, 2500, 100)
    ids = client.ids()
    # when it finishes them in reads of one each, until it is not read
    said = 0
    while client.reading:
        client.say(b"FIN %b\n" % ids[said])
        said += 1
    # then that is soon, and for a moment
    assert said < 20
    assert counter.resting == [client.connection]
    counter.wake()
    assert client.reading
    # and what came meanwhile is finished at once
    client.say(b"".join(b"FIN %b\n" % id_ for id_ in ids[said:]))
    assert counter.node.homes["t"].topic.channels["c"].unfinished.in_flight == 0


@pytest.mark.parametrize(
    ("ready", "messages"), [(100, 100), (2500, 7)], ids=["it takes few at a time", "it has hardly any"]
)
def test_a_consumer_that_may_wait_for_what_it_asks_is_always_read(ready: int, messages: int) -> None:
    counter = Counter()
    client = consumer(counter, ready, messages)
    # when it finishes its messages in reads of one each, and asks for more again and again
    for id_ in client.ids():
        client.say(b"FIN %b\n" % id_)
        client.say(b"RDY %d\n" % ready)
        # then nothing of it waits
        assert client.reading
    assert not counter.resting


def test_who_publishes_in_small_reads_is_always_read() -> None:
    client = Socket(counter := Counter())
    for _ in range(100):
        client.say(pub("t", b"m"))
    assert client.reading
    assert not counter.resting


def test_a_consumer_that_rests_is_not_read_where_it_does_not_take_its_answers() -> None:
    # given one that rests, and by now does not take what it is sent
    counter = Counter()
    client = consumer(counter, 2500, 100)
    for id_ in client.ids()[:50]:
        if client.reading:
            client.say(b"FIN %b\n" % id_)
    client.connection.session.unsent = 1 << 30
    # when its rest is over
    counter.wake()
    # then it is still not read
    assert not client.reading
