"""Topics: what R does, who gets what was published when, and what depth means."""

from __future__ import annotations

import pytest

from penstock.log.chain import Hole
from tests.unit.broker.world import World, hand


def test_what_comes_before_the_first_channel_waits_for_it() -> None:
    world = World()
    world.publish(b"1", b"2")
    assert (world.topic.routed, world.topic.depth) == (0, 2)
    channel = world.channel()
    assert (world.topic.routed, world.topic.depth) == (2, 0)
    assert hand(world.consumer(channel, 5)).bodies == [b"1", b"2"]


def test_a_later_channel_gets_what_comes_after_it() -> None:
    world = World()
    world.channel("first")
    world.publish(b"1")
    late = world.channel("late")
    world.publish(b"2")
    assert hand(world.consumer(late, 5)).bodies == [b"2"]
    assert [world.topic.count_of(channel) for channel in world.topic.channels.values()] == [2, 1]


def test_what_comes_to_a_paused_topic_waits_for_the_channels_there_are_then() -> None:
    world = World()
    early = world.channel("early")
    world.topic.paused = True
    world.publish(b"1")
    meanwhile = world.channel("meanwhile")
    assert (world.topic.depth, world.topic.depth_of(early)) == (1, 0)
    world.topic.paused = False
    world.topic.route(world.now)
    for channel in (early, meanwhile):
        assert hand(world.consumer(channel, 5)).bodies == [b"1"]


def test_without_a_channel_r_stands_again() -> None:
    world = World()
    world.channel("only")
    world.publish(b"1")
    world.topic.remove_channel("only")
    world.publish(b"2", b"3")
    assert world.topic.depth == 2
    assert hand(world.consumer(world.channel("next"), 5)).bodies == [b"2", b"3"]


def test_an_emptied_topic_has_a_hole_that_nobody_gets() -> None:
    world = World()
    world.publish(b"1", b"2")
    assert world.topic.empty() == (0, 2)
    assert world.topic.depth == 0
    world.publish(b"3")
    channel = world.channel()
    assert world.topic.depth_of(channel) == 1
    assert hand(world.consumer(channel, 5)).bodies == [b"3"]


def test_holes_count_as_nothing_however_they_lie() -> None:
    topic = World().topic
    for hole in ((10, 20), (15, 30), (30, 40), (50, 60), (5, 5)):
        topic.add_hole(*hole)
    assert topic.count(0, 100) == 60
    assert topic.count(35, 55) == 10
    assert topic.count(12, 18) == 0
    assert [offset for offset in range(60) if topic.holds(offset)] == [*range(10), *range(40, 50)]


def test_an_ephemeral_channel_keeps_the_newest_and_needs_nothing_kept() -> None:
    world = World(bound=3)
    channel = world.channel("c#ephemeral")
    durable = world.channel("durable")
    for number in range(10):
        world.publish(b"%d" % number)
    assert world.topic.depth_of(channel) == 3
    assert channel.skipped == 7
    assert hand(world.consumer(channel, 9)).bodies == [b"7", b"8", b"9"]
    assert world.topic.low_water == 0
    world.finish(durable, world.consumer(durable, 9), *range(9))
    assert world.topic.low_water == 9


def test_a_hole_is_nothing_that_an_ephemeral_channel_has_to_drop_messages_for() -> None:
    # given a topic with an ephemeral channel that may lag three messages behind, and a hole behind the second one
    world = World(bound=3)
    channel = world.channel("c#ephemeral")
    world.publish(b"0", b"1", *[b"lost"] * 100)
    channel.cursor = 0
    channel.skipped = 0
    world.topic.add_hole(2, 102)
    # when a third one comes, then none was dropped; with two more, two are
    world.publish(b"102")
    assert (channel.cursor, channel.skipped) == (0, 0)
    world.publish(b"103", b"104")
    assert (channel.cursor, channel.skipped) == (102, 2)


def test_r_never_goes_back_when_a_topic_is_emptied_before_what_a_restart_found_is_flushed() -> None:
    # given a topic as it is after a start, with sync_every=1: R at the log's end, which nobody flushed yet
    topic = World().topic
    topic.routed, topic.committed = 10, 5
    # when it is emptied, then there is nothing to empty
    assert topic.empty() == (10, 10)
    assert topic.routed == 10


def test_a_message_below_the_cursor_keeps_the_log_until_it_is_finished() -> None:
    world = World()
    channel = world.channel()
    consumer = world.consumer(channel, 9)
    world.publish(b"1", b"2", b"3")
    world.finish(channel, consumer, 0, 2)
    assert world.topic.low_water == 1
    world.finish(channel, consumer, 1)
    assert world.topic.low_water == 3


def test_a_topic_held_back_routes_nothing_until_it_is_let_go() -> None:
    world = World()
    world.topic.hold_back(True)
    channel = world.channel("first")
    world.publish(b"1")
    other = world.channel("other")
    world.topic.hold_back(False)
    world.topic.route(world.now)
    for each in (channel, other):
        assert hand(world.consumer(each, 5)).bodies == [b"1"]


# --- going back


def test_a_rewound_channel_gets_again_what_it_had_and_counts_it_again() -> None:
    # given a channel that has finished one message and has another in flight
    world = World()
    channel = world.channel()
    world.publish(b"1", b"2", b"3")
    consumer = world.consumer(channel, 2)
    world.finish(channel, consumer, 0)
    channel.ready(consumer, 0)
    # when it is rewound
    world.topic.rewind(channel, 0)
    # then all of it waits, nothing is in flight, and what its consumer says of what it had is refused
    assert (world.topic.depth_of(channel), channel.unfinished.in_flight, len(channel.unfinished)) == (3, 0, 0)
    assert world.finish(channel, consumer, 1) == [0]
    # and its consumer, still connected, gets it as it came the first time
    hand(consumer).given.clear()
    channel.ready(consumer, 9)
    channel.pump(world.now)
    assert [(each.body, each.attempts) for each in hand(consumer).given] == [(b"1", 1), (b"2", 1), (b"3", 1)]
    assert world.topic.count_of(channel) == 6


def test_a_channel_that_skips_counts_what_came_and_not_what_it_was_given() -> None:
    world = World()
    channel = world.channel()
    world.publish(b"1", b"2", b"3")
    world.topic.rewind(channel, 2)
    assert hand(world.consumer(channel, 9)).bodies == [b"3"]
    assert world.topic.count_of(channel) == 3


def test_holes_stay_holes_for_who_goes_back() -> None:
    world = World()
    world.publish(b"1")
    channel = world.channel()
    world.topic.paused = True
    world.publish(b"2")
    world.log.add_hole(Hole(*world.topic.empty(), "emptied"))
    world.topic.paused = False
    world.publish(b"3")
    world.topic.rewind(channel, 0)
    assert world.topic.depth_of(channel) == 2
    assert hand(world.consumer(channel, 9)).bodies == [b"1", b"3"]


@pytest.mark.parametrize(
    ("cursor", "bodies", "count"),
    [
        pytest.param(None, [b"1", b"2", b"3"], 3, id="at-r"),
        pytest.param(1, [b"2", b"3"], 2, id="between-r-and-the-end"),
        pytest.param(3, [], 0, id="at-the-end"),
    ],
)
def test_a_first_channel_may_begin_anywhere_in_what_waits(cursor: int | None, bodies: list[bytes], count: int) -> None:
    world = World()
    world.publish(b"1", b"2", b"3")
    channel = world.topic.add_channel("c", 0, cursor)
    world.topic.route(world.now)
    assert world.topic.count_of(channel) == world.topic.depth_of(channel) == count
    assert hand(world.consumer(channel, 9)).bodies == bodies


def test_a_channel_may_begin_below_r() -> None:
    world = World()
    world.channel("first")
    world.publish(b"1", b"2")
    channel = world.topic.add_channel("all", 0, 0)
    world.topic.route(world.now)
    assert (world.topic.count_of(channel), world.topic.low_water) == (2, 0)
    assert hand(world.consumer(channel, 9)).bodies == [b"1", b"2"]


def test_the_latest_is_where_r_goes_and_where_it_stands_while_it_does_not() -> None:
    world = World()
    world.publish(b"1")
    assert world.topic.latest == 1
    world.topic.paused = True
    assert world.topic.latest == 0


def test_an_ephemeral_channel_goes_back_no_further_than_its_bound() -> None:
    world = World(bound=2)
    channel = world.channel("c#ephemeral")
    for _ in range(3):
        world.publish(b"x")
    world.topic.paused = True
    world.topic.rewind(channel, 0)
    assert (channel.cursor, world.topic.depth_of(channel)) == (1, 2)
