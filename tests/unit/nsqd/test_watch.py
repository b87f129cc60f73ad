"""Slow clients: who says nothing, and whose command never becomes whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.nsqd.alarms import NEVER
from penstock.nsqd.watch import EACH, FIRST, SLOWEST, Watch
from tests.unit.nsqd.talk import Desk, Talk

if TYPE_CHECKING:
    from penstock.nsqd.session import Session

S = 10**9


class Client(Talk):
    """One that is watched from its first byte, or from before it."""

    def __init__(self, desk: Desk, watch: Watch, *, silent: bool = False) -> None:
        super().__init__(desk)
        if silent:
            self.session.moved = False
        watch.add(self.session, 0)


def dropped(watch: Watch, now: int) -> list[Session]:
    return [session for session, _ in watch.look(now)]


def test_who_does_not_say_what_it_speaks_is_dropped() -> None:
    # given one client that has said it, and one that has not
    desk, watch = Desk(), Watch()
    polite, silent = Client(desk, watch), Client(desk, watch, silent=True)
    # when it has had its time
    assert dropped(watch, FIRST - 1) == []
    # then it goes, and the other stays
    assert dropped(watch, FIRST) == [silent.session]
    assert polite.session is not silent.session


def test_who_is_idle_between_commands_stays() -> None:
    # given a client that says nothing for an hour
    desk, watch = Desk(), Watch()
    Client(desk, watch)
    # then nobody drops it: heartbeats find out whether it is there
    for now in range(FIRST, 3600 * S, EACH):
        assert dropped(watch, now) == []


def test_a_command_that_comes_drop_by_drop_is_given_up() -> None:
    # given a client that announces a body, and sends a byte of it every ten seconds
    desk, watch = Desk(), Watch()
    client = Client(desk, watch)
    client.say(b"PUB t\n\0\x10\0\0")
    found: list[Session] = []
    for now in range(0, 4 * EACH, 10 * S):
        client.say(b"a")
        found += dropped(watch, now)
    # then it is dropped, once
    assert found == [client.session]


def test_who_makes_commands_whole_stays_however_slow_it_is() -> None:
    # given a client that sends a byte every ten seconds, each fourth of which ends a command
    desk, watch = Desk(), Watch()
    client = Client(desk, watch)
    for turn, now in enumerate(range(0, 20 * EACH, 10 * S)):
        client.say(b"NOP\n"[turn % 4 :][:1])
        # then it stays
        assert dropped(watch, now) == []


def test_a_large_body_over_a_slow_line_may_take_its_time() -> None:
    # given a client that sends a large body a little faster than the slowest rate
    desk, watch = Desk(max_msg_size=100 << 20, max_body_size=100 << 20), Watch()
    client = Client(desk, watch)
    client.say(b"PUB t\n\x03\0\0\0")
    for now in range(0, 4 * EACH, 10 * S):
        for _ in range(10):
            client.say(bytes(SLOWEST + 100))
        # then it stays
        assert dropped(watch, now) == []


def test_who_waits_for_the_node_is_not_slow() -> None:
    # given a client that is held, with a command behind that
    desk, watch = Desk(), Watch()
    client = Client(desk, watch)
    client.session.held = True
    client.say(b"PUB t\n\0\0\0\1a")
    client.session.moved = False
    for now in range(0, 4 * EACH, 10 * S):
        assert dropped(watch, now) == []


def test_who_has_left_is_not_looked_at() -> None:
    desk, watch = Desk(), Watch()
    clients = [Client(desk, watch, silent=True) for _ in range(2)]
    watch.remove(clients[0].session)
    assert watch.next == FIRST
    assert dropped(watch, FIRST) == [clients[1].session]
    watch.remove(clients[1].session)
    assert watch.next == NEVER
