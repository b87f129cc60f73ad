"""A consumer without sockets: who may send how much, what is touched, given back, and held back."""

from __future__ import annotations

import random
from collections.abc import Coroutine

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.client.backoff import Backoff
from penstock.client.handshake import Agreement
from penstock.client.intake import Intake
from penstock.client.message import Message
from penstock.errors import AlreadyAnswered
from tests.unit.client.builders import Conversation, id_of


def intake(max_in_flight: int = 100, longest: float = 120.0) -> Intake:
    return Intake(max_in_flight, Backoff(longest=longest))


def finish(message: Message) -> None:
    done(message.finish())


def requeue(message: Message, delay: float | None = None, *, backoff: bool = True) -> None:
    done(message.requeue(delay, backoff=backoff))


def done(coroutine: Coroutine[None, None, None]) -> None:
    """It waits for nothing, so that no loop is needed."""
    with pytest.raises(StopIteration):
        coroutine.send(None)


# --- messages


def test_what_comes_is_handed_out_in_order_and_what_is_said_of_it_is_sent() -> None:
    core = intake()
    nsqd = Conversation(core)
    nsqd.deliver(1, 2, 3)
    # when each is asked for and answered
    first, second = core.next(), core.next()
    assert first is not None
    assert second is not None
    finish(first)
    requeue(second, 1.5)
    # then the nsqd is told
    assert nsqd.sent[1:] == [b"FIN " + id_of(1) + b"\n", b"REQ " + id_of(2) + b" 1500\n"]
    assert [each.id for each in nsqd.subscription.in_flight.values()] == [id_of(3)]
    assert (core.stats.received, core.stats.finished, core.stats.requeued) == (3, 1, 1)


def test_a_message_is_answered_once() -> None:
    core = intake()
    (message,) = Conversation(core).deliver(1)
    finish(message)
    with pytest.raises(AlreadyAnswered):
        finish(message)
    with pytest.raises(AlreadyAnswered):
        requeue(message)


def test_the_delay_of_a_requeue_grows_with_the_attempts() -> None:
    message = Message(id_of(1), b"", 1, 0)
    assert message._delay() == 1.0
    assert Message(id_of(1), b"", 4, 0)._delay() == 8.0
    assert Message(id_of(1), b"", 60_000, 0)._delay() == 900.0


def test_what_a_lost_connection_gave_is_not_handed_out_and_its_answers_go_nowhere() -> None:
    core = intake()
    nsqd, other = Conversation(core), Conversation(core)
    (begun,) = nsqd.deliver(1)
    assert core.next() is begun
    nsqd.deliver(2)
    other.deliver(3)
    # when the connection is lost
    core.disconnected(nsqd.subscription, 1.0)
    nsqd.sent.clear()
    # then what waited is passed over, and an answer is no error and not sent
    following = core.next()
    assert following is not None
    assert following.id == id_of(3)
    assert not begun.held
    finish(begun)
    assert nsqd.sent == []
    assert core.stats.finished == 0


def test_a_message_that_comes_a_second_time_is_another_one() -> None:
    core = intake()
    nsqd = Conversation(core)
    (before,) = nsqd.deliver(1)
    # when nsqd thinks that its time was over
    (after,) = nsqd.deliver(1)
    # then the first one is not held any more, and its answer does not finish the second
    finish(before)
    assert (before.held, after.held) == (False, True)
    assert core.next() is after


# --- time


def test_a_message_is_touched_at_half_its_time_and_again_until_nsqd_allows_no_more() -> None:
    core = intake()
    agreement = Agreement(2500, msg_timeout=10.0, max_msg_timeout=30.0, version="")
    nsqd = Conversation(core, agreement=agreement)
    (message,) = nsqd.deliver(1, at=0.0)
    touched = []
    now = 0.0
    while message.held:
        before = nsqd.sent.count(b"TOUCH " + id_of(1) + b"\n")
        now = core.due
        core.tick(now)
        if nsqd.sent.count(b"TOUCH " + id_of(1) + b"\n") > before:
            touched.append(now)
    assert touched == pytest.approx([5.0, 10.0, 15.0, 20.0, 25.0])
    assert now == pytest.approx(30.0)
    assert core.stats.timed_out == 1
    assert core.next() is None


def test_untouched_messages_time_out_and_are_not_handed_out_any_more() -> None:
    core = intake()
    nsqd = Conversation(core, touches=False)
    nsqd.deliver(1, at=0.0)
    nsqd.deliver(2, at=30.0)
    core.tick(59.0)
    assert len(nsqd.subscription.in_flight) == 2
    core.tick(60.0)
    message = core.next()
    assert message is not None
    assert message.id == id_of(2)
    assert not any(each.startswith(b"TOUCH") for each in nsqd.sent)


def test_after_a_loop_that_stood_still_what_timed_out_meanwhile_is_not_touched() -> None:
    core = intake()
    nsqd = Conversation(core)
    (message,) = nsqd.deliver(1, at=0.0)
    core.tick(61.0)
    assert not message.held
    assert not any(each.startswith(b"TOUCH") for each in nsqd.sent)


# --- RDY


def test_each_nsqd_gets_its_share() -> None:
    core = intake(100)
    nsqds = [Conversation(core) for _ in range(3)]
    assert sorted(nsqd.ready for nsqd in nsqds) == [33, 33, 34]


def test_no_nsqd_is_told_more_than_it_takes_and_others_get_the_rest() -> None:
    core = intake(100)
    small, large = Conversation(core, most=10), Conversation(core, most=2500)
    assert (small.ready, large.ready) == (10, 90)


def test_a_new_nsqd_gets_its_share_from_the_others_as_their_messages_are_answered() -> None:
    core = intake(10)
    first = Conversation(core)
    messages = first.deliver(*range(10), at=0.0)
    # when another one comes
    second = Conversation(core, at=0.1)
    # then the first is told less, and the second waits until that much is answered
    assert (first.ready, second.ready) == (5, 0)
    for message in messages[:7]:
        finish(message)
        core.tick(0.2)
    assert second.ready == 5
    assert core.restless is False


def test_a_share_comes_back_when_its_nsqd_goes() -> None:
    core = intake(10)
    first, second = Conversation(core), Conversation(core)
    core.disconnected(second.subscription, 1.0)
    assert first.ready == 10


def test_idle_nsqd_lend_their_share_to_the_busy_ones_and_have_it_back_at_their_first_message() -> None:
    core = intake(100)
    busy, idle = Conversation(core), Conversation(core)
    for message in busy.deliver(1, at=10.0):
        finish(message)
    core.tick(10.1)
    assert (busy.ready, idle.ready) == (99, 1)
    # when the idle one has a message
    idle.deliver(2, at=10.5)
    assert core.due == 10.5
    core.tick(10.5)
    assert (busy.ready, idle.ready) == (50, 50)


def test_more_nsqd_than_messages_in_flight_take_turns_and_none_waits_for_two_seconds() -> None:
    # given 20 nsqd that all have messages, and one message in flight at a time, dealt with in a millisecond
    core = intake(1)
    nsqds = [Conversation(core) for _ in range(20)]
    last = [0.0] * 20
    longest = now = 0.0
    number = 0
    while now < 20.0:
        now += 0.001
        if now >= core.due:
            core.tick(now)
        holding = [place for place, nsqd in enumerate(nsqds) if nsqd.ready]
        assert len(holding) <= 1
        for place in holding:
            number += 1
            (message,) = nsqds[place].deliver(number, at=now)
            longest = max(longest, now - last[place])
            last[place] = now
            finish(message)
            if core.restless:
                core.tick(now)
    longest = max(longest, *(now - when for when in last))
    assert longest < 2.0
    assert number > 15_000


def test_a_lone_busy_nsqd_among_idle_ones_gets_most_of_the_time() -> None:
    core = intake(1)
    nsqds = [Conversation(core) for _ in range(20)]
    now, served = 0.0, 0
    while now < 10.0:
        now += 0.001
        if now >= core.due:
            core.tick(now)
        if nsqds[7].ready:
            served += 1
            (message,) = nsqds[7].deliver(served, at=now)
            finish(message)
    assert served > 10_000 / 8


def test_a_message_that_takes_long_is_the_only_one_in_flight() -> None:
    core = intake(1)
    nsqds = [Conversation(core) for _ in range(3)]
    holder = next(nsqd for nsqd in nsqds if nsqd.ready)
    (message,) = holder.deliver(1, at=0.0)
    # when its handler takes many turns
    for step in range(1, 1000):
        core.tick(step / 100)
        assert all(nsqd.ready == 0 or nsqd is holder for nsqd in nsqds)
    # then the next one has its turn behind it
    finish(message)
    core.tick(10.0)
    assert [nsqd.ready for nsqd in nsqds if nsqd is not holder].count(1) == 1


def test_a_far_nsqd_has_the_time_of_its_round_trips() -> None:
    core = intake(1)
    far, near = Conversation(core, round_trip=0.4), Conversation(core)
    core.tick(0.0)
    while not far.ready:
        core.tick(core.due)
    began = core.due
    while far.ready:
        began = core.due
        core.tick(core.due)
    assert began >= 0.8
    assert near.ready == 1


def test_a_consumer_can_be_paused_and_go_on() -> None:
    core = intake(10)
    nsqd = Conversation(core)
    core.allow(0, 1.0)
    assert nsqd.ready == 0
    core.allow(4, 2.0)
    assert nsqd.ready == 4


@given(st.randoms(use_true_random=False), st.integers(0, 12), st.integers(1, 8))
def test_whatever_happens_no_more_is_in_flight_than_may_be_and_nobody_starves(
    chance: random.Random, max_in_flight: int, nsqds: int
) -> None:
    # given nsqd that come and go, messages that are answered sooner or later, and limits that change
    core = intake(max_in_flight, longest=0.0)
    there: list[Conversation] = []
    now, number = 0.0, 0
    limit = max_in_flight
    for _ in range(150):
        now += chance.random() * 0.1
        act = chance.randrange(12)
        if act == 0 and len(there) < nsqds:
            there.append(Conversation(core, at=now, most=chance.choice([1, 5, 2500])))
        elif act == 1 and there:
            core.disconnected(there.pop(chance.randrange(len(there))).subscription, now)
        elif act == 2:
            limit = chance.randrange(13)
            core.allow(limit, now)
        elif act < 8 and there:
            nsqd = chance.choice(there)
            if len(nsqd.subscription.in_flight) < nsqd.ready:
                number += 1
                nsqd.deliver(number, at=now)
        else:
            message = core.next()
            if message is not None:
                finish(message)
        if now >= core.due or core.restless:
            core.tick(now)
        # then what may come and what is there is never more than it should, but for what came before it was less
        assert sum(nsqd.ready for nsqd in there) <= limit
    # and when all is answered, each is served within two seconds, where anybody is
    while (message := core.next()) is not None:
        finish(message)
    served: set[int] = set()
    until = now + 2.0
    while now < until and limit:
        if core.restless:
            core.tick(now)
        served.update(place for place, nsqd in enumerate(there) if nsqd.ready)
        now = max(now + 1e-4, min(core.due, until))
        core.tick(now)
    assert not limit or served == set(range(len(there)))


# --- back-off


def test_a_failure_stops_all_nsqd_and_one_message_is_tried_before_all_goes_on() -> None:
    core = intake(10)
    nsqds = [Conversation(core), Conversation(core)]
    (message,) = nsqds[0].deliver(1, at=0.0)
    # when it fails
    requeue(message)
    assert core.restless
    core.tick(0.0)
    # then nobody may send for a second, then one of them one message
    assert [nsqd.ready for nsqd in nsqds] == [0, 0]
    assert core.due <= 1.0
    core.tick(1.0)
    assert sorted(nsqd.ready for nsqd in nsqds) == [0, 1]
    # and all when that one succeeds
    probing = next(nsqd for nsqd in nsqds if nsqd.ready)
    (message,) = probing.deliver(2, at=1.1)
    finish(message)
    core.tick(1.2)
    core.tick(core.due)
    assert sum(nsqd.ready for nsqd in nsqds) == 10


def test_a_requeue_by_nobodys_fault_holds_nothing_back() -> None:
    core = intake(10)
    nsqd = Conversation(core)
    (message,) = nsqd.deliver(1)
    requeue(message, backoff=False)
    assert not core.restless
    assert nsqd.ready == 10


# --- the end


def test_a_stop_asks_for_no_more_and_gives_back_what_nobody_began_with() -> None:
    core = intake(10)
    nsqd = Conversation(core)
    nsqd.deliver(1, 2)
    begun = core.next()
    assert begun is not None
    nsqd.sent.clear()
    core.stop()
    # then the queue is given back, without a delay; what was begun with may still be finished
    assert nsqd.sent == [b"CLS\n", b"REQ " + id_of(2) + b" 0\n"]
    assert core.next() is None
    finish(begun)
    assert nsqd.sent[-1] == b"FIN " + id_of(1) + b"\n"
    # and what was on its way is given back when it comes
    nsqd.deliver(3)
    assert nsqd.sent[-1] == b"REQ " + id_of(3) + b" 0\n"


def test_what_is_still_worked_on_after_a_stop_is_touched_and_nothing_more_is_asked_for() -> None:
    core = intake(10)
    nsqd = Conversation(core)
    nsqd.deliver(1, at=0.0)
    assert core.next() is not None
    core.stop()
    nsqd.sent.clear()
    now = 0.0
    while now < 31.0:
        assert core.due > now
        now = core.due
        core.tick(now)
    assert nsqd.sent == [b"TOUCH " + id_of(1) + b"\n"]


def test_what_is_held_at_the_very_end_is_given_back() -> None:
    core = intake(10)
    nsqd = Conversation(core)
    (message,) = nsqd.deliver(1)
    core.next()
    core.stop()
    core.give_back()
    assert nsqd.sent[-1] == b"REQ " + id_of(1) + b" 0\n"
    assert message.answered
