"""What is to be published and what is owed an answer: joined, refused, lost; sent again where nothing was done."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from penstock.client.frames import ANSWER, ERROR
from penstock.client.outbox import Batch, Lane, Outbox
from penstock.errors import AnswerLost, BadMessage, NotSent, PubFailed
from penstock.protocol import requests


def put(outbox: Outbox, topic: str, *bodies: bytes, at: float = 0.0) -> list[Future[None]]:
    receipts: list[Future[None]] = [Future() for _ in bodies]
    for body, receipt in zip(bodies, receipts, strict=True):
        outbox.put(topic, body, receipt, at)
    return receipts


def taken(outbox: Outbox, now: float = 0.0) -> list[Batch]:
    outbox.end_turn()
    batches = []
    while (batch := outbox.next(now)) is not None:
        batches.append(batch)
    return batches


def sent(outbox: Outbox, lane: Lane, now: float = 0.0) -> list[bytes]:
    """Everything that waits goes out; as which commands."""
    batches = taken(outbox, now)
    for batch in batches:
        lane.sent(batch, now)
    return [batch.command() for batch in batches]


def test_messages_of_one_turn_are_joined_by_topic_in_order() -> None:
    outbox = Outbox()
    put(outbox, "a", b"1", b"2")
    put(outbox, "b", b"3")
    put(outbox, "a", b"4")
    assert [each.command() for each in taken(outbox)] == [
        requests.mpub("a", [b"1", b"2", b"4"]),
        requests.pub("b", b"3"),
    ]


def test_messages_of_two_turns_are_not_joined() -> None:
    outbox = Outbox()
    put(outbox, "a", b"1")
    outbox.end_turn()
    put(outbox, "a", b"2")
    assert [each.command() for each in taken(outbox)] == [requests.pub("a", b"1"), requests.pub("a", b"2")]


@pytest.mark.parametrize(("size", "joined"), [(1, 1000), (100 << 10, 5), (600 << 10, 1)])
def test_what_is_joined_is_bounded(size: int, joined: int) -> None:
    outbox = Outbox()
    put(outbox, "a", *[b"x" * size] * 2 * joined)
    assert [len(each.bodies) for each in taken(outbox)] == [joined, joined]


def test_many_in_one_command_stay_together_and_in_their_place() -> None:
    outbox = Outbox()
    put(outbox, "a", b"1")
    outbox.put_together("a", [b"2", b"3"], Future(), 0.0)
    put(outbox, "a", b"4")
    outbox.put_together("a", [b"5"], Future(), 0.0, 200)
    assert [each.command() for each in taken(outbox)] == [
        requests.pub("a", b"1"),
        requests.mpub("a", [b"2", b"3"]),
        requests.pub("a", b"4"),
        requests.dpub("a", 200, b"5"),
    ]


def test_an_ok_is_for_the_first_that_is_owed_one() -> None:
    outbox = Outbox()
    lane = Lane(outbox)
    first, second = put(outbox, "a", b"1") + put(outbox, "b", b"22")
    sent(outbox, lane)
    assert (outbox.count, outbox.size) == (2, 3)
    lane.answer(ANSWER, b"OK")
    assert (first.done(), second.done()) == (True, False)
    assert (outbox.count, outbox.size) == (1, 2)
    lane.answer(ANSWER, b"OK")
    assert second.result(0) is None
    assert (outbox.count, outbox.size) == (0, 0)


def test_where_the_connection_is_lost_nobody_knows() -> None:
    outbox = Outbox()
    lane = Lane(outbox)
    (receipt,) = put(outbox, "a", b"1")
    sent(outbox, lane)
    lane.lost("reset by peer")
    with pytest.raises(AnswerLost, match="may be published, or not: reset by peer"):
        receipt.result(0)
    assert outbox.count == 0


def test_a_refused_message_that_was_joined_fails_alone() -> None:
    # given three messages that went out together, and one behind them
    outbox = Outbox()
    lane = Lane(outbox)
    receipts = put(outbox, "a", b"1", b"bad", b"3") + put(outbox, "b", b"4")
    sent(outbox, lane)
    # when nsqd refuses the three
    lane.answer(ERROR, b"E_BAD_MESSAGE MPUB message too big")
    # then all go out again one by one, in order
    lane = Lane(outbox)
    commands = sent(outbox, lane)
    assert commands == [
        requests.pub("a", b"1"),
        requests.pub("a", b"bad"),
        requests.pub("a", b"3"),
        requests.pub("b", b"4"),
    ]
    # and the bad one fails, and what is behind it goes out once more
    lane.answer(ANSWER, b"OK")
    lane.answer(ERROR, b"E_BAD_MESSAGE PUB message too big")
    lane = Lane(outbox)
    assert sent(outbox, lane) == commands[2:]
    lane.answer(ANSWER, b"OK")
    lane.answer(ANSWER, b"OK")
    assert [each.exception(0) is None for each in receipts] == [True, False, True, True]
    with pytest.raises(BadMessage, match="PUB message too big"):
        receipts[1].result(0)
    assert (outbox.count, outbox.size) == (0, 0)


def test_many_that_the_user_put_together_fail_together() -> None:
    outbox = Outbox()
    lane = Lane(outbox)
    receipt: Future[None] = Future()
    outbox.put_together("a", [b"1", b"2"], receipt, 0.0)
    sent(outbox, lane)
    lane.answer(ERROR, b"E_BAD_MESSAGE")
    with pytest.raises(BadMessage):
        receipt.result(0)
    assert outbox.count == 0


def test_behind_a_failure_of_which_nobody_knows_nothing_is_sent_again() -> None:
    outbox = Outbox()
    lane = Lane(outbox)
    first, second = put(outbox, "a", b"1") + put(outbox, "b", b"2")
    sent(outbox, lane)
    lane.answer(ERROR, b"E_PUB_FAILED PUB failed disk full")
    lane.lost("closed")
    with pytest.raises(PubFailed):
        first.result(0)
    with pytest.raises(AnswerLost):
        second.result(0)
    assert not outbox.waiting


def test_what_waited_too_long_is_not_sent() -> None:
    outbox = Outbox()
    (early,) = put(outbox, "a", b"1", at=0.0)
    outbox.end_turn()
    (late,) = put(outbox, "a", b"2", at=5.0)
    outbox.expire(4.0, "nobody there")
    with pytest.raises(NotSent, match="nobody there"):
        early.result(0)
    assert not late.done()
    assert (outbox.count, outbox.size) == (1, 1)


def test_who_gave_up_while_it_waited_publishes_nothing() -> None:
    outbox = Outbox()
    first, second, third = put(outbox, "a", b"1", b"22", b"333")
    (other,) = put(outbox, "b", b"4444")
    # when some are cancelled before there is a connection
    first.cancel()
    other.cancel()
    # then the rest goes out without them, and nothing of them is counted
    lane = Lane(outbox)
    assert sent(outbox, lane, now=1.0) == [requests.mpub("a", [b"22", b"333"])]
    lane.answer(ANSWER, b"OK")
    assert (second.done(), third.done()) == (True, True)
    assert (outbox.count, outbox.size) == (0, 0)
