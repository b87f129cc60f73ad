"""Channels of a node that go on from elsewhere: what is remembered of that, and what it holds."""

from __future__ import annotations

import errno

import pytest

from penstock.errors import LogError
from penstock.nsqd.snapshot import Snapshot
from tests.kit import FailingFiles, MemoryFiles
from tests.unit.nsqd.world import PATH, S, Ticket, World

ENDS = pytest.mark.parametrize("end", [World.kill, World.restart])


def world_of_three() -> World:
    """A topic whose channel has finished all of its three messages."""
    world = World()
    channel, consumer, hand = world.consume("t", "c")
    world.publish("t", b"a", b"b", b"c")
    world.finish("t", channel, consumer, hand.offsets)
    return world


@ENDS
def test_a_rewound_channel_stays_so(end: object) -> None:
    # given a channel of which the journal knows that all is finished
    world = world_of_three()
    world.tick()
    # when it is rewound, and the process ends in whatever way
    world.node.rewind(world.channel("t", "c"), 1)
    end(world)  # type: ignore[operator]
    # then it gets the rest again
    _, _, hand = world.consume("t", "c")
    assert hand.offsets == [1, 2]


@ENDS
def test_what_it_did_after_that_is_remembered_too(end: object) -> None:
    world = World()
    channel, consumer, hand = world.consume("t", "c")
    world.publish("t", b"a", b"b", b"c")
    world.node.rewind(channel, 0)
    assert hand.offsets == [0, 1, 2, 0, 1, 2]
    world.finish("t", channel, consumer, [0, 2])
    world.tick()
    end(world)  # type: ignore[operator]
    _, _, hand = world.consume("t", "c")
    assert hand.offsets == [1]


def test_a_rewind_amid_a_compaction_is_in_neither_too_early_nor_too_late() -> None:
    # given a channel with more unfinished messages than one slice says, which a compaction is about to say
    world = World()
    channel, consumer, _ = world.consume("t", "c", ready=10_000)
    world.publish("t", *[b"x"] * 10_000)
    channel.ready(consumer, 0)
    journal = world.node.scribe.journal
    journal.compact(Snapshot(world.node))
    for _ in range(2):
        assert journal.write_slice(world.clock.wall)
    # when it is rewound to what the slices have passed already
    world.node.rewind(channel, 10)
    while journal.write_slice(world.clock.wall):
        pass
    # then that is what the next process finds
    world.kill()
    assert (world.channel("t", "c").cursor, len(world.channel("t", "c").unfinished)) == (10, 0)


@ENDS
def test_a_channel_that_began_in_the_past_does_so_after_a_restart(end: object) -> None:
    world = world_of_three()
    world.node.channel(world.home("t"), "all", 0)
    world.node.channel(world.home("t"), "some", 2)
    end(world)  # type: ignore[operator]
    assert world.consume("t", "all")[2].offsets == [0, 1, 2]
    assert world.consume("t", "some")[2].offsets == [2]


def test_a_first_channel_skips_what_waits() -> None:
    world = World()
    world.publish("t", b"a", b"b")
    world.node.channel(world.home("t"), "c", 1)
    assert world.home("t").topic.routed == 2
    world.kill()
    assert world.consume("t", "c")[2].offsets == [1]


def test_what_a_rewound_channel_goes_back_to_is_kept() -> None:
    # given a topic that retains nothing, of some segments, all consumed
    world = World(max_bytes_per_file=500)
    channel, consumer, hand = world.consume("t", "c", ready=1000)
    for _ in range(40):
        world.publish("t", b"x" * 100)
    world.finish("t", channel, consumer, hand.offsets)
    # when the channel is rewound before anything was deleted
    channel.ready(consumer, 0)
    world.node.rewind(channel, 10)
    for _ in range(4):
        world.tick()
    # then what it goes back to stays
    assert 0 < world.log("t").earliest <= 10
    channel.ready(consumer, 1000)
    hand.offsets.clear()
    world.node.pump(channel)
    assert hand.offsets == list(range(10, 40))


def test_who_goes_back_gets_what_was_deferred_before_it_was_made() -> None:
    # given a channel that was made when a message was deferred already, and the message is in the log now
    world = World()
    world.channel("t", "early")
    home, ticket = world.home("t"), Ticket()
    world.node.defer(home, [b"later"], 5 * S, ticket)
    world.clock.wall += 1
    channel, _, hand = world.consume("t", "late")
    world.tick(6)
    world.tick(6)
    assert (world.log("t").end, hand.offsets) == (1, [])
    # when it goes back, then the message is for it; and for one that begins in the past
    world.node.rewind(channel, 0)
    assert hand.offsets == [0]
    world.node.channel(home, "all", 0)
    world.kill()
    for name in ("late", "all"):
        assert world.consume("t", name)[2].offsets == [0]


def test_who_skips_gets_nothing_more_than_before() -> None:
    world = World()
    channel, _, _ = world.consume("t", "c")
    world.publish("t", b"a")
    world.node.empty_channel(channel)
    before = channel.since
    world.node.rewind(channel, world.home("t").topic.latest)
    assert channel.since == before > 0
    assert world.node.channel(world.home("t"), "new", 1).since == world.clock.wall


def test_what_the_journal_does_not_take_is_not_done() -> None:
    memory = MemoryFiles()
    memory.make_directory(PATH)
    files = FailingFiles(memory)
    world = World(files)
    channel, consumer, hand = world.consume("t", "c")
    world.publish("t", b"a", b"b")
    world.finish("t", channel, consumer, [0])
    files.fail(errno.ENOSPC, on="write", path="*/journal/*", times=None)
    with pytest.raises(LogError):
        world.node.rewind(channel, 0)
    assert (channel.cursor, channel.unfinished.in_flight) == (2, 1)
    with pytest.raises(LogError):
        world.node.channel(world.home("t"), "all", 0)
    assert list(world.home("t").topic.channels) == ["c"]
    files.heal()
    world.node.rewind(channel, 0)
    assert hand.offsets == [0, 1, 0, 1]


def test_an_ephemeral_channel_is_rewound_and_not_written_down() -> None:
    world = World()
    world.publish("t", b"a", b"b")
    channel, _, hand = world.consume("t", "c#ephemeral")
    before = world.node.scribe.journal.end
    world.node.rewind(channel, 0)
    assert hand.offsets == [0, 1, 0, 1]
    assert world.node.scribe.journal.end == before
