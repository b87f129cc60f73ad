"""Channels: who is given what, when it comes again, and what the counts say."""

from __future__ import annotations

import itertools

import pytest

from penstock.broker.consumer import UNSENT
from tests.unit.broker.world import Given, S, World, hand


def test_a_message_not_finished_in_time_is_delivered_again() -> None:
    # given a message that the first consumer took at t=0 for 60 s
    world = World()
    channel = world.channel()
    first = world.consumer(channel, 1)
    world.publish(b"m1")
    # when its time runs out, and another consumer wants one
    channel.ready(first, 0)
    second = world.consumer(channel, 1)
    world.pass_time(60 * S - 1)
    assert hand(second).given == []
    world.pass_time(60 * S)
    # then the other one gets it, as a second attempt
    assert hand(first).given == [Given(b"m1", 1, 0)]
    assert hand(second).given == [Given(b"m1", 2, 0)]
    assert channel.timeout_count == 1
    # and the first can finish it no more
    assert world.finish(channel, first, 0) == [0]
    assert channel.why_not(0) == "client does not own message"
    assert world.finish(channel, second, 0) is None
    assert channel.why_not(0) == "ID not in flight"


@pytest.mark.parametrize("touched", [False, True])
def test_a_consumer_that_lets_messages_time_out_is_given_the_next_without_asking(touched: bool) -> None:
    # given the only consumer, which has all that it asked for and says nothing more
    world = World()
    channel = world.channel()
    consumer = world.consumer(channel, 1)
    world.publish(b"m1", b"m2")
    if touched:  # as often as is allowed
        world.pass_time(59 * S)
        channel.touch(consumer, 0, world.now, 60 * S)
    # when its message's time runs out
    world.pass_time(60 * S)
    # then it has room again, and gets another
    assert len(hand(consumer).given) == 2
    assert channel.unfinished.in_flight == 1


def test_nobody_has_more_in_flight_than_it_asked_for() -> None:
    world = World()
    channel = world.channel()
    consumer = world.consumer(channel, 3)
    world.publish(*(b"%d" % n for n in range(10)))
    assert hand(consumer).bodies == [b"0", b"1", b"2"]
    world.finish(channel, consumer, 1, 0)
    assert hand(consumer).bodies[3:] == [b"3", b"4"]
    assert channel.unfinished.in_flight == 3
    assert world.topic.depth_of(channel) == 5
    # when it asks for fewer, it gets none before it has fewer
    channel.ready(consumer, 1)
    world.finish(channel, consumer, 2, 3)
    assert len(hand(consumer).given) == 5
    world.finish(channel, consumer, 4)
    assert len(hand(consumer).given) == 6


def test_few_messages_are_shared_out_fairly() -> None:
    world = World()
    channel = world.channel()
    consumers = [world.consumer(channel, 100) for _ in range(5)]
    world.publish(*(b"%d" % n for n in range(10)))
    assert [len(hand(consumer).given) for consumer in consumers] == [2] * 5


def test_a_consumer_that_reads_slowly_holds_up_nobody_else() -> None:
    # given one whose unsent bytes are at their bound
    world = World()
    channel = world.channel()
    slow = world.consumer(channel, 100)
    quick = world.consumer(channel, 100)
    hand(slow).unsent = UNSENT
    world.publish(*(b"%d" % n for n in range(10)))
    assert len(hand(slow).given) == 0
    assert len(hand(quick).given) == 10
    # when it has read, it has its share again
    hand(slow).unsent = 0
    channel.wake(slow)
    world.publish(*(b"%d" % n for n in range(10)))
    assert len(hand(slow).given) == 5


def test_what_is_ready_again_and_what_is_new_take_turns() -> None:
    world = World()
    channel = world.channel()
    consumer = world.consumer(channel, 1)
    world.publish(*(b"%d" % n for n in range(6)))
    order = []
    for _ in range(6):
        given = hand(consumer).given[-1]
        order.append(given.attempts)
        channel.requeue(consumer, given.offset, world.now, 0)
        channel.pump(world.now)
    assert set(order[1:]) == {1, 2}
    assert order.count(1) >= 3


def test_a_delayed_requeue_comes_when_it_is_over_and_not_before() -> None:
    world = World()
    channel = world.channel()
    consumer = world.consumer(channel, 5)
    world.publish(b"m")
    assert channel.requeue(consumer, 0, world.now, 2 * S)
    channel.pump(world.now)
    assert channel.unfinished.delayed == 1
    assert world.topic.depth_of(channel) == 0
    world.pass_time(2 * S - 1)
    assert len(hand(consumer).given) == 1
    world.pass_time(2 * S + 20 * 10**6)
    assert hand(consumer).given[1:] == [Given(b"m", 2, 0)]
    assert (channel.requeue_count, channel.unfinished.delayed) == (1, 0)


def test_who_leaves_in_order_leaves_its_messages_to_the_others_at_once() -> None:
    world = World()
    channel = world.channel()
    leaving = world.consumer(channel, 2)
    world.publish(b"sent", b"unsent")
    channel.leave(leaving, world.now, [1], aborted=False)
    staying = world.consumer(channel, 2)
    # the one that never left the process was not tried
    assert sorted(hand(staying).given) == [Given(b"sent", 2, 0), Given(b"unsent", 1, 1)]


def test_who_crashes_again_and_again_does_not_burn_the_attempts() -> None:
    # given a consumer that dies of a message, and another each time
    world = World()
    channel = world.channel()
    world.publish(b"poison")
    times: list[int] = []
    while len(times) < 5:
        victim = world.consumer(channel, 1)
        if hand(victim).given:
            times.append(world.now)
        channel.leave(victim, world.now, [], aborted=bool(hand(victim).given))
        world.pass_time(world.now + S // 10)
    # then each attempt comes later than the one before: go-nsq's five are not gone in seconds
    waits = [later - sooner for sooner, later in itertools.pairwise(times)]
    assert waits == sorted(waits)
    assert times[-1] > 7 * S


def test_an_emptied_channel_gets_what_comes_later() -> None:
    world = World()
    channel = world.channel()
    consumer = world.consumer(channel, 1)
    world.publish(b"1", b"2", b"3")
    channel.empty(world.now)
    assert world.finish(channel, consumer, 0) == [0]
    world.publish(b"4")
    assert hand(consumer).bodies == [b"1", b"4"]
    assert world.topic.depth_of(channel) == 0


def test_a_rewound_channel_gets_it_all_again_as_new() -> None:
    world = World()
    channel = world.channel()
    consumer = world.consumer(channel, 10)
    world.publish(b"1", b"2", b"3")
    world.finish(channel, consumer, 0, 1)
    channel.rewind(1)
    channel.pump(world.now)
    assert hand(consumer).given[3:] == [Given(b"2", 1, 1), Given(b"3", 1, 2)]


def test_a_paused_channel_gives_nothing_and_still_takes_what_is_finished() -> None:
    world = World()
    channel = world.channel()
    consumer = world.consumer(channel, 1)
    world.publish(b"1", b"2")
    channel.paused = True
    assert world.finish(channel, consumer, 0) is None
    assert hand(consumer).bodies == [b"1"]
    channel.paused = False
    channel.pump(world.now)
    assert hand(consumer).bodies == [b"1", b"2"]


def test_a_block_that_is_not_here_yet_is_waited_for() -> None:
    world = World()
    channel = world.channel()
    consumer = world.consumer(channel, 5)
    world.cold = True
    world.publish(b"1")
    assert hand(consumer).given == []
    world.cold = False
    channel.pump(world.now)
    assert hand(consumer).bodies == [b"1"]


def test_a_client_that_samples_loses_the_rest_for_the_channel() -> None:
    world = World()
    channel = world.channel()
    consumer = world.consumer(channel, 10_000, sample_rate=50)
    world.publish(*(b"%d" % n for n in range(2000)))
    # Go's probability is one percent more than asked
    assert 900 < len(hand(consumer).given) < 1140
    assert channel.unfinished.in_flight == len(hand(consumer).given)
    assert world.topic.depth_of(channel) == 0
    assert channel.skipped == 2000 - len(hand(consumer).given)


def test_touch_gives_a_message_more_time_up_to_the_maximum() -> None:
    world = World()
    channel = world.channel()
    consumer = world.consumer(channel, 1, timeout=10 * S)
    world.publish(b"m")
    for now in (9 * S, 18 * S):
        world.pass_time(now)
        assert channel.touch(consumer, 0, world.now, 25 * S)
    world.pass_time(25 * S - 1)
    assert channel.timeout_count == 0
    world.pass_time(25 * S)
    assert channel.timeout_count == 1
