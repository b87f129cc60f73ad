"""sync_every=1: what a start finds written and does not know to be flushed waits for the flush, and is not lost."""

from __future__ import annotations

from tests.unit.nsqd.world import World


def killed() -> World:
    """A topic of three messages, one of them in flight; the process was killed, the flush of the next is to come."""
    world = World(sync_every=1)
    world.publish("t", b"1", b"2", b"3")
    world.work()
    world.consume("t", "c", ready=1)
    world.tick()
    world.kill()
    assert world.log("t").committed < world.log("t").end
    return world


def test_a_consumer_that_comes_before_the_first_flush_waits_for_it() -> None:
    world = killed()
    _, _, hand = world.consume("t", "c")
    assert hand.offsets == []
    world.work()
    assert sorted(hand.offsets) == [0, 1, 2]


def test_it_waits_for_it_while_the_topic_is_paused_too() -> None:
    world = killed()
    world.node.pause_topic(world.home("t"), True)
    _, _, hand = world.consume("t", "c")
    world.work()
    assert sorted(hand.offsets) == [0, 1, 2]
