"""sync_every=1: what a start finds written and does not know to be flushed waits for the flush, and is not lost."""

from __future__ import annotations

from tests.kit import PowerCuts
from tests.unit.nsqd.world import PATH, S, Ticket, World


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


def test_what_is_answered_ok_comes_on_each_channel_that_there_was_whatever_a_power_cut_takes() -> None:
    # given two channels that are made just before a publish, and a deferred one
    files = PowerCuts()
    files.make_directory(PATH)
    files.flush_all(PATH)
    world = World(files, sync_every=1)
    for channel in ("c", "d"):
        world.consume("t", channel, ready=0)
    tickets = [world.publish("t", b"now"), Ticket()]
    world.node.defer(world.home("t"), [b"later"], 100 * S, tickets[1])
    # when both are answered, at the latest when the threads have done what they had to do
    begun = files.step
    world.work()
    assert [ticket.answers for ticket in tickets] == [[None], [None]]
    # then whatever a cut leaves from then on, each channel has both
    assert files.step > begun
    for state in files.now.every_cut():
        again = World(state, "another boot", sync_every=1)
        again.work()
        hands = [again.consume("t", channel)[2] for channel in ("c", "d")]
        again.work()
        assert [len(hand.offsets) for hand in hands] == [1, 1]
        again.tick(101)
        again.tick(0)
        assert [len(hand.offsets) for hand in hands] == [2, 2]


def test_a_publish_is_not_answered_before_its_channels_are_on_the_device() -> None:
    # given a flush of the topic that overtakes the journal's
    world = World(sync_every=1)
    world.publish("t", b"first")
    world.work()
    world.consume("t", "c", ready=0)
    ticket = world.publish("t", b"a")
    journal, topic = world.works.popleft(), world.works.popleft()
    for work, done in (topic, journal):
        assert ticket.answers == []
        work()
        done()
    # when both are done, then it is
    world.work()
    assert ticket.answers == [None]
