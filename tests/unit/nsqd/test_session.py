"""What a client is told for what it says, as by an original nsqd: each line here was said to one as well."""

from __future__ import annotations

import json

import pytest

from tests.unit.nsqd.talk import Desk, Talk, pub, sized
from tests.unit.nsqd.world import S

NOT_IN_FLIGHT = b"failed ID not in flight"
NOT_OWNED = b"failed client does not own message"
FIN, REQ, TOUCH = (b"E_%b_FAILED %b <id> " % (word, word) for word in (b"FIN", b"REQ", b"TOUCH"))


@pytest.mark.parametrize(
    "turns",
    [
        [(pub("t", b"m"), [b"OK"]), (b"SUB t c\n", [b"OK"]), (b"RDY 1\n", [b"1 m"]), (b"FIN {0}\n", [])],
        [(b"SUB t c\nRDY 1\n", [b"OK"]), (pub("t", b"m"), [b"OK", b"1 m"]), (b"REQ {0} 0\n", [b"2 m"])],
        [
            (b"SUB t c\nRDY 1\n" + pub("t", b"m"), [b"OK", b"OK", b"1 m"]),
            (b"FIN {0}\n", []),
            (b"FIN {0}\nREQ {0} 0\nTOUCH {0}\n", [FIN + NOT_IN_FLIGHT, REQ + NOT_IN_FLIGHT, TOUCH + NOT_IN_FLIGHT]),
        ],
        [
            (b"SUB t c\nRDY 2\n" + pub("t", b"m") + pub("t", b"n"), [b"OK", b"OK", b"OK", b"1 m", b"1 n"]),
            (b"CLS\n", [b"CLOSE_WAIT"]),
            (b"RDY 5\nRDY x\nRDY -1\n", []),
            (b"TOUCH {0}\nREQ {0} 0\n", []),
            (b"FIN {1}\n" + pub("t", b"o"), [b"OK"]),
        ],
        [
            (b"SUB t c\nRDY 1\n", [b"OK"]),
            (b"FIN zzzzzzzzzzzzzzzz\n", [b"E_FIN_FAILED FIN zzzzzzzzzzzzzzzz " + NOT_IN_FLIGHT]),
            (b"REQ \xff123456789abcdef 0\n", [b"E_REQ_FAILED REQ \xff123456789abcdef " + NOT_IN_FLIGHT]),
            (b"TOUCH 0123456789abcdef\n", [TOUCH + NOT_IN_FLIGHT]),
        ],
    ],
    ids=["finished", "requeued", "finished twice", "closing", "no such id"],
)
def test_messages_and_what_is_said_of_them(turns: list[tuple[bytes, list[bytes]]]) -> None:
    client = Talk(Desk())
    for said, told in turns:
        assert client.say(said) == told
    assert not client.session.ending


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"FOO\n", [b"E_INVALID invalid command FOO"]),
        (b"RDY 1\n", [b"E_INVALID cannot RDY in current state"]),
        (b"SUB t c\nSUB t c\n", [b"OK", b"E_INVALID cannot SUB in current state"]),
        (b"SUB t c\nFIN x\n", [b"OK", b"E_INVALID invalid message ID"]),
        (b"SUB t c\nRDY 2501\n", [b"OK", b"E_INVALID RDY count 2501 out of range 0-2500"]),
        (b"SUB t c\nCLS\nCLS\n", [b"OK", b"CLOSE_WAIT", b"E_INVALID cannot CLS in current state"]),
        (b"AUTH\n" + sized(b"x"), [b"E_AUTH_DISABLED AUTH disabled"]),
        (
            b"IDENTIFY\n" + sized(b'{"heartbeat_interval": -1}') + b"SUB t c\n",
            [b"OK", b"E_INVALID cannot SUB with heartbeats disabled"],
        ),
        (pub("t", b"m") * 2 + pub("t", b""), [b"OK", b"OK", b"E_BAD_MESSAGE PUB invalid message body size 0"]),
        (pub("t", b"m") + b"x" * 16384, [b"OK"]),
        (
            b"SUB t c\n" + pub("t", b"m") + b"FIN 0123456789abcdef\nFOO\n",
            [b"OK", b"OK", FIN + NOT_IN_FLIGHT, b"E_INVALID invalid command FOO"],
        ),
    ],
)
def test_what_ends_a_connection_ends_it_behind_the_answers_that_are_owed(said: bytes, told: list[bytes]) -> None:
    # given a client that says what is right, then what is not, then something that is never heard
    client = Talk(Desk())
    assert client.say(said + pub("unheard", b"m")) == told
    # then it is told so, in that order, and that was all
    assert client.session.ended
    assert "unheard" not in client.session.node.homes


def test_only_who_has_a_message_can_say_something_of_it() -> None:
    # given a message that one client has
    desk = Desk()
    one, other = Talk(desk), Talk(desk)
    assert one.say(b"SUB t c\nRDY 1\n" + pub("t", b"m")) == [b"OK", b"OK", b"1 m"]
    # when another one of its channel speaks of it
    assert other.say(b"SUB t c\n") == [b"OK"]
    other.ids = one.ids
    # then it is told whose it is not
    said = b"FIN {0}\nREQ {0} 0\nTOUCH {0}\n"
    assert other.say(said) == [FIN + NOT_OWNED, REQ + NOT_OWNED, TOUCH + NOT_OWNED]
    assert one.say(b"FIN {0}\n") == []


def test_a_channel_takes_as_many_consumers_as_it_may_have() -> None:
    desk = Desk(max_channel_consumers=1)
    assert Talk(desk).say(b"SUB t c\n") == [b"OK"]
    assert Talk(desk).say(b"SUB t c\n") == [b"E_SUB_FAILED SUB failed consumers for t:c exceeds limit of 1"]


@pytest.mark.parametrize(("name", "host"), [("10.0.0.1:5000", "10.0.0.1"), ("[::1]:5000", "::1"), ("@", "")])
def test_a_client_is_called_by_its_host_until_it_says_more(name: str, host: str) -> None:
    client = Talk(Desk(), name)
    agreement = client.session.agreement
    assert (agreement.client_id, agreement.hostname) == (host, host)
    # as in nsqd, one that identifies itself without a name has none
    client.say(b"IDENTIFY\n" + sized(json.dumps({"hostname": "h"}).encode()))
    agreement = client.session.agreement
    assert (agreement.client_id, agreement.hostname) == ("", "h")


@pytest.mark.parametrize("asked", [b"DPUB t 1000\n" + sized(b"m"), b"REQ {0} 1000\n"], ids=["DPUB", "REQ"])
def test_a_delay_counts_from_when_it_was_asked_for_however_long_the_turn_is(asked: bytes) -> None:
    # given a consumer, and a turn that has lasted 3 s when it comes to what somebody has just said
    desk = Desk()
    client = Talk(desk)
    client.say(b"SUB t c\nRDY 1\n")
    if asked.startswith(b"REQ"):
        client.say(pub("t", b"m"))
    desk.late = 3 * S
    client.say(asked)
    desk.read_clock()  # by the next turn
    # when it is nearly over, then nothing comes; when it is, the message does
    assert later(desk, client, 0.999) == []
    assert later(desk, client, 0.02) == [b"m"]


def later(desk: Desk, client: Talk, seconds: float) -> list[bytes]:
    """The bodies that came when so much time has passed; what is due may have to be prepared by a thread first."""
    for passed in (seconds, 0, 0):
        desk.world.tick(passed)
        desk.turn()
    return [heard.partition(b" ")[2] for heard in client.heard() if heard != b"OK"]
