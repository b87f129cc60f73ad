"""An emptied topic: what no channel was given is given to none, whatever they have read ahead."""

from __future__ import annotations

import pytest

from tests.unit.nsqd.world import World


@pytest.mark.parametrize("topic", ["t", "t#ephemeral"])
def test_a_channel_that_lags_does_not_get_what_was_emptied_behind_it(topic: str) -> None:
    # given a paused topic with three messages for a channel, of which it gave one, and two behind them
    world = World()
    world.channel(topic, "c")
    for body in (b"0", b"1", b"2"):
        world.publish(topic, body)
    home = world.home(topic)
    world.node.pause_topic(home, True)
    world.publish(topic, b"3", b"4")
    channel, consumer, hand = world.consume(topic, "c", ready=1)
    # when the topic is emptied and goes on
    world.node.empty_topic(home)
    world.publish(topic, b"5")
    world.node.pause_topic(home, False)
    channel.ready(consumer, 10)
    world.node.pump(channel)
    # then the channel gives what it had, and what came since
    assert hand.offsets == [0, 1, 2, 5]
