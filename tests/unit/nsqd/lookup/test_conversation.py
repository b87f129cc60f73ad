"""What an nsqlookupd is told on one connection, and when it is given up: by a clock that a test moves."""

from __future__ import annotations

import pytest

from penstock.errors import RegisteringFailed
from penstock.nsqd.lookup.conversation import PATIENCE, PING_INTERVAL, About, Conversation
from penstock.protocol.registering import register
from penstock.protocol.v1 import answer

ABOUT = answer(b'{"broadcast_address":"b","hostname":"h","http_port":2,"tcp_port":1,"version":"1.3.0"}')
OK = answer(b"OK")


def conversation(*everything: tuple[str, str]) -> Conversation:
    talk = Conversation(b"{}", lambda: everything)
    talk.begin(0)
    return talk


def registered(*everything: tuple[str, str]) -> Conversation:
    """And all is answered."""
    talk = conversation(*everything)
    talk.received(ABOUT, 0)
    talk.received(OK * len(everything), 0)
    return talk


def test_everything_is_registered_when_it_has_said_who_it_is() -> None:
    talk = conversation(("t", ""), ("u", "c"), ("u", "d"))
    assert not talk.registered
    assert talk.received(ABOUT[:9], 1) == b""
    assert talk.received(ABOUT[9:], 2) == b"REGISTER t\nREGISTER u c\nREGISTER u d\n"
    assert talk.registered
    assert talk.about == About("b", 1, 2, "1.3.0")


def test_what_changes_before_that_is_not_told_on_its_own() -> None:
    talk = conversation()
    assert talk.tell(register("t"), 1) == b""
    talk.received(ABOUT, 2)
    assert talk.tell(register("t"), 3) == b"REGISTER t\n"


def test_commands_do_not_wait_for_each_other_s_answers() -> None:
    talk = registered()
    assert talk.tell(register("t"), 1)
    assert talk.tell(register("u"), 2)
    assert talk.received(OK + OK, 3) == b""


def test_a_ping_goes_out_each_15_s() -> None:
    talk = registered()
    assert talk.next_time == PING_INTERVAL
    assert talk.tick(PING_INTERVAL - 1) == b""
    assert talk.tick(PING_INTERVAL) == b"PING\n"
    talk.received(OK, PING_INTERVAL + 1)
    assert talk.next_time == 2 * PING_INTERVAL


@pytest.mark.parametrize("begin", [conversation, registered], ids=["at first", "later"])
def test_who_owes_an_answer_and_is_silent_is_given_up(begin: object) -> None:
    talk = begin()  # type: ignore[operator]
    talk.tell(register("t"), 0)
    assert talk.next_time == PATIENCE
    assert talk.tick(PATIENCE - 1) == b""
    with pytest.raises(RegisteringFailed, match=r"^does not answer for 5 s$"):
        talk.tick(PATIENCE)


def test_who_answers_slowly_is_not() -> None:
    # given two answers that are owed, of which one comes
    talk = registered()
    talk.tell(register("t"), 0)
    talk.tell(register("u"), PATIENCE // 2)
    talk.received(OK, PATIENCE - 1)
    # then the other has time from then on
    assert talk.next_time == 2 * PATIENCE - 1
    # and after a long silence in which nothing was owed, the next answer has all of its time
    talk.received(OK, PATIENCE)
    talk.tell(register("v"), 2 * PATIENCE)
    assert talk.tick(2 * PATIENCE + 1) == b""
    assert talk.next_time == min(3 * PATIENCE, PING_INTERVAL)


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        (answer(b"E_INVALID no"), "answered IDENTIFY with E_INVALID no"),
        (answer(b'{"http_port":"2"}'), "answered IDENTIFY with "),
        (ABOUT + answer(b"E_BAD_TOPIC \xff"), r"said E_BAD_TOPIC \\xff"),
        (ABOUT + OK + OK, "said OK, and was not asked"),
        (b"\xff\xff\xff\xff", "an answer of -1 bytes"),
    ],
)
def test_an_answer_that_should_not_be_ends_the_connection(answers: bytes, why: str) -> None:
    talk = conversation(("t", ""))
    with pytest.raises(RegisteringFailed, match=why):
        talk.received(answers, 1)


def test_an_nsqlookupd_of_another_kind_may_say_less_or_more() -> None:
    talk = conversation()
    talk.received(answer(b'{"http_port":2,"more":[1]}'), 1)
    assert talk.about == About("", 0, 2, "")
