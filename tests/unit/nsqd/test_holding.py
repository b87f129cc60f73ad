"""R stands while the channels of a new topic are looked up: nobody waits, and nothing is missed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.nsqd.world import World

if TYPE_CHECKING:
    from penstock.nsqd.home import Home


class Listener:
    """Holds each new topic, and writes down what it is told."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.heard: list[tuple[str, ...]] = []
        world.node.listener = self

    def made(self, home: Home, channel: str = "") -> None:
        self.heard.append(("made", home.topic.name, channel))
        if not channel:
            self._world.node.hold(home)

    def gone(self, topic: str, channel: str = "") -> None:
        self.heard.append(("gone", topic, channel))


@pytest.fixture
def world() -> World:
    world = World(nsqlookupd_tcp_addresses=("a:1",))
    Listener(world)
    return world


def test_what_is_published_meanwhile_is_answered_and_is_for_all_channels(world: World) -> None:
    # given a topic that is being looked up, and a consumer
    assert world.publish("t", b"a").answers == [None]
    _, _, first = world.consume("t", "c")
    world.publish("t", b"b")
    assert first.offsets == []
    # when the look-up has found a channel
    found = world.channel("t", "found")
    world.node.release(world.home("t"))
    # then both get all of it, and R goes on
    assert first.offsets == [0, 1]
    assert world.home("t").topic.depth_of(found) == 2
    world.publish("t", b"c")
    assert first.offsets == [0, 1, 2]
    assert world.home("t").topic.depth_of(found) == 3


def test_with_no_channel_r_stands_for_the_first_one(world: World) -> None:
    world.publish("t", b"a")
    world.node.release(world.home("t"))
    assert world.home("t").topic.depth == 1
    assert world.consume("t", "c")[2].offsets == [0]


def test_a_look_up_that_a_kill_ended_is_not_over(world: World) -> None:
    # given a topic with a channel that is being looked up
    world.publish("t", b"a")
    world.channel("t", "c")
    # when the process is killed
    world.kill()
    # then the next one knows, and R stands
    home = world.home("t")
    assert list(world.node.held) == [home]
    assert (home.topic.routed, home.topic.depth) == (0, 1)
    # until it is released, which then holds over a kill as well
    world.channel("t", "found")
    world.node.release(home)
    world.kill()
    assert not world.node.held
    topic = world.home("t").topic
    assert [topic.depth_of(channel) for channel in topic.channels.values()] == [1, 1]


@pytest.mark.parametrize("released", [True, False])
def test_a_topic_that_is_paused_meanwhile_stays_so(world: World, released: bool) -> None:
    world.channel("t", "c")
    world.node.pause_topic(world.home("t"), True)
    if released:
        world.node.release(world.home("t"))
    world.publish("t", b"a")
    world.kill()
    topic = world.home("t").topic
    assert (topic.paused, topic.depth, list(world.node.held)) == (True, 1, [])
    world.node.pause_topic(world.home("t"), False)
    assert topic.depth == 0


def test_a_pause_that_ends_meanwhile_does_not_end_the_look_up(world: World) -> None:
    _, _, hand = world.consume("t", "c")
    world.publish("t", b"a")
    for paused in True, False:
        world.node.pause_topic(world.home("t"), paused)
    assert hand.offsets == []
    world.kill()
    assert world.home("t").topic.depth == 1
    assert list(world.node.held) == [world.home("t")]


def test_a_topic_that_is_deleted_meanwhile_is_left_alone(world: World) -> None:
    world.publish("t", b"a")
    before = world.home("t")
    world.node.delete_topic(before)
    again = world.node.topic("t")
    world.node.release(before)
    assert list(world.node.held) == [again]


def test_whoever_listens_hears_of_all_that_comes_and_goes() -> None:
    world = World()
    listener = Listener(world)
    world.channel("t", "c")
    world.channel("t", "d")
    world.node.delete_channel(world.home("t"), "d")
    world.node.delete_topic(world.home("t"))
    world.consume("e#ephemeral", "c#ephemeral")
    world.node.delete_channel(world.home("e#ephemeral"), "c#ephemeral")
    assert listener.heard == [
        ("made", "t", ""), ("made", "t", "c"), ("made", "t", "d"),
        ("gone", "t", "d"), ("gone", "t", "c"), ("gone", "t", ""),
        ("made", "e#ephemeral", ""), ("made", "e#ephemeral", "c#ephemeral"),
        ("gone", "e#ephemeral", "c#ephemeral"), ("gone", "e#ephemeral", ""),
    ]  # fmt: skip


def test_a_start_without_anybody_to_ask_tells_nobody_and_holds_nothing() -> None:
    world = World()
    world.channel("t", "c")
    world.restart()
    assert not world.node.held
