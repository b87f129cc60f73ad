"""A conversation of an nsqd with nsqlookupd, without a socket."""

from __future__ import annotations

import pytest

from penstock.daemon.logging import Level, Logger
from penstock.nsqlookupd.registrations import Registrations
from penstock.nsqlookupd.session import Session
from penstock.protocol.v1 import answer
from tests.unit.protocol.test_v1 import identify

OK = answer(b"OK")
ABOUT = b'{"version":"1.3.0"}'


class World:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.registrations = Registrations(300, 45, lambda _: None)
        self.session = Session(self.registrations, "10.0.0.1:5", ABOUT, Logger("", Level.DEBUG, write=self._line))

    def _line(self, line: bytes) -> bool:
        self.lines.append(line.decode())
        return True

    def say(self, data: bytes, now: int = 0) -> bytes:
        return self.session.received(data, now)


def test_each_command_is_answered_in_order() -> None:
    world = World()
    answers = world.say(b"  V1PING\n" + identify() + b"REGISTER t c\nUNREGISTER t c\nPING\n")
    assert answers == OK + answer(ABOUT) + OK * 3
    assert list(world.registrations.topics) == ["t"]
    assert not world.session.ended


def test_a_ping_says_that_the_nsqd_is_there() -> None:
    world = World()
    world.say(b"  V1" + identify() + b"REGISTER t\n")
    world.registrations.advance(301)
    assert world.registrations.shown("t") == []
    world.say(b"PING\n", 302)
    assert [nsqd.address for nsqd in world.registrations.shown("t")] == ["10.0.0.1:5"]


def test_an_error_is_the_last_answer() -> None:
    world = World()
    assert world.say(b"  V1PING\nFOO\nPING\n") == OK + answer(b"E_INVALID invalid command FOO")
    assert world.session.ended
    assert world.say(b"PING\n") == b""
    assert any("E_INVALID invalid command FOO" in line for line in world.lines)


def test_a_line_without_an_end_is_told_nothing() -> None:
    world = World()
    assert world.say(b"  V1" + b"a" * 20_000) == b""
    assert world.session.ended


def test_what_it_registered_goes_with_it() -> None:
    world = World()
    world.say(b"  V1" + identify() + b"REGISTER t c\n")
    world.session.leave()
    assert world.registrations.shown("t") == []
    assert not world.registrations.nsqds
    gone = [line for line in world.lines if "UNREGISTER" in line]
    assert [line.rpartition("client")[2] for line in gone] == [
        "(10.0.0.1:5) UNREGISTER category:channel key:t subkey:c\n",
        "(10.0.0.1:5) UNREGISTER category:topic key:t subkey:\n",
    ]


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (b"  V1PI", b""),
        (b"  V1IDENTIFY\n", answer(b"E_BAD_BODY IDENTIFY failed to read body size")),
        (b"  V1FOO\n", b""),
    ],
)
def test_the_end_of_its_stream_is_answered_where_it_stands_in_an_identify(sent: bytes, told: bytes) -> None:
    world = World()
    world.say(sent)
    assert world.session.cut_off() == told
    assert world.session.ended
