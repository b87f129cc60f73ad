"""A session with a gate: TLS first, AUTH, permissions that end; and the table of commands."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any

import pytest

from hot_modules import source
from penstock.auth.permissions import Who
from penstock.errors import AuthServerError
from penstock.nsqd.gate import NEEDS, Gate
from penstock.nsqd.session import _HANDLERS
from tests.unit.nsqd.talk import Desk, Talk, pub

if TYPE_CHECKING:
    from collections.abc import Callable

S = 10**9


class Rights:
    """Permissions of a client, to publish and to subscribe to these topics."""

    def __init__(self, *topics: str, until: int = 1 << 62) -> None:
        self.identity, self.identity_url = "shop", ""
        self.count = len(topics)
        self._topics = topics
        self._until = until

    def hold(self, now: int) -> bool:
        return now <= self._until

    def allow(self, topic: str, channel: str) -> bool:
        return topic in self._topics


class World:
    """A client behind a gate, and the authority that is asked."""

    def __init__(self, *, tls_required: bool = False) -> None:
        self.desk = Desk()
        self.asked: list[tuple[Who, Callable[[Any], None]]] = []
        self.talk = Talk(self.desk)
        self.session = self.talk.session
        self.session.gate = Gate(
            self.session, lambda who, then: self.asked.append((who, then)), tls_required=tls_required
        )

    def answer(self, found: object) -> list[bytes]:
        """What the authority says to the oldest question."""
        self.asked.pop(0)[1](found)
        return self.talk.say(b"")

    def auth(self, found: object) -> list[bytes]:
        self.talk.say(b"AUTH\n\0\0\0\6secret")
        return self.answer(found)


def test_every_command_stands_in_the_table() -> None:
    # given all that the parser can give
    text = source("penstock.protocol.commands").read_text()
    named = set(re.findall(r"^class (\w+)", text, re.MULTILINE))
    # then the gate knows each, and so does the session
    assert {kind.__name__ for kind in _HANDLERS} == {kind.__name__ for kind in NEEDS} == named - {"Publish"}
    # and those that are about a topic need a permission
    needing = {kind.__name__ for kind, (_, needs) in NEEDS.items() if needs}
    assert needing == {"Sub", "Pubs", "Mpub", "Opening", "Dpub"}


def test_a_command_behind_auth_waits_for_the_answer() -> None:
    # given a client that shows its secret and publishes at once
    world = World()
    assert world.talk.say(b"AUTH\n\0\0\0\6secret" + pub("t", b"a") * 2) == []
    assert world.asked[0][0] == Who(b"secret", "10.0.0.1")
    assert world.session.held
    # when the authority answers
    said = world.answer(Rights("t"))
    # then it is told so, and then its publishes are answered
    assert said == [b'{"identity":"shop","identity_url":"","permission_count":1}', b"OK", b"OK"]
    assert not world.session.held


@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_permissions_that_end_are_asked_for_again_wherever_reads_are_cut(size: int) -> None:
    # given a client whose permissions are over
    world = World()
    world.auth(Rights("t", until=world.desk.clock.now - 1))
    # when it publishes in reads of this size
    stream = (
        pub("t", b"one") + pub("t", b"two") + b"MPUB t\n" + b"\0\0\0\x0f\0\0\0\1\0\0\0\x05three" + pub("t", b"four")
    )
    said: list[bytes] = []
    for at in range(0, len(stream), size):
        said += world.talk.say(stream[at : at + size])
        if world.asked:
            said += world.answer(Rights("t"))
    # then all is published, once and in order
    assert said == [b"OK"] * 4
    consumer = Talk(world.desk)
    came = consumer.say(b"SUB t c\nRDY 10\n")
    assert came == [b"OK", b"1 one", b"1 two", b"1 three", b"1 four"]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (Rights(), b"E_UNAUTHORIZED AUTH no authorizations found"),
        (AuthServerError("the server is gone"), b"E_AUTH_FAILED AUTH failed"),
        (KeyError("a bug"), b"E_AUTH_ERROR AUTH error"),
    ],
    ids=["nothing", "nobody", "bug"],
)
def test_who_is_not_known_is_told_no_more_and_leaves(found: object, said: bytes) -> None:
    world = World()
    assert world.auth(found) == [said]
    assert world.session.ended
    # and the log says what went wrong
    if isinstance(found, Exception):
        assert any(f"AUTH failed {found}" in line for line in world.desk.world.lines)


def test_an_answer_for_a_client_that_has_left_changes_nothing() -> None:
    # given a client that waits for the authority, and is cut off by the node's end
    world = World()
    world.talk.say(b"AUTH\n\0\0\0\6secret")
    world.session.ending = True
    # when the answer comes
    assert world.answer(Rights("t")) == []


def test_who_sends_its_last_while_it_waits_is_answered() -> None:
    # given a client that shows its secret, publishes, and closes its side
    world = World()
    world.talk.say(b"AUTH\n\0\0\0\6secret" + pub("t", b"a"))
    world.session.cut_off()
    assert not world.session.ending
    # when the authority answers
    said = world.answer(Rights("t"))
    # then so is the client, and then it is over
    assert said[-1] == b"OK"
    assert world.session.ended


COMMANDS = [pub("t", b"a"), b"DPUB t 100\n\0\0\0\1a", b"MPUB t\n\0\0\0\x0d\0\0\0\1\0\0\0\1a", b"SUB t c\n"]


@pytest.mark.parametrize("command", [*COMMANDS, b"AUTH\n\0\0\0\1a"], ids=lambda command: command.split()[0].decode())
def test_where_tls_is_required_it_comes_first(command: bytes) -> None:
    world = World(tls_required=True)
    name = command.split()[0]
    assert world.talk.say(command) == [b"E_INVALID cannot " + name + b" in current state (TLS required)"]


@pytest.mark.parametrize(("command", "authed"), list(itertools.product(COMMANDS, [True, False])))
def test_a_topic_that_is_not_allowed_is_not_touched(command: bytes, authed: bool) -> None:
    # given a client that may use another topic, or has not said who it is
    world = World()
    if authed:
        world.auth(Rights("another"))
    # when it sends a command
    (said,) = world.talk.say(command)
    # then it is refused, and the topic is not made
    assert said.startswith(b"E_UNAUTHORIZED" if authed else b"E_AUTH_FIRST")
    assert "t" not in world.desk.node.homes
