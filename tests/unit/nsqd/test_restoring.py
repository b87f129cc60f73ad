"""A start on a journal of which a power cut took a block, and left what was written behind it."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from penstock.log import entries as e
from penstock.log.state import NodeState
from tests.kit import FailingFiles, MemoryFiles
from tests.unit.nsqd.world import PATH, S, Ticket, World

if TYPE_CHECKING:
    from penstock.log.state import TopicState


def in_the_journal(world: World, topic: str) -> TopicState:
    state = NodeState()
    state.apply_all(world.node.scribe.journal.replay())
    found = state.topic(topic)
    assert found is not None
    return found


def test_r_goes_on_where_nothing_says_any_more_why_it_stood() -> None:
    # given a topic that was paused when its channel was made, and a cut that took only the pause
    world = World(sync_every=1)
    world.channel("t", "c")
    number = world.home("t").number
    world.node.scribe.order(e.Routed(number, 0, False, 0))
    world.publish("t", b"a")
    world.work()
    # when it starts, then its channel has what was published, and one that is made now has not
    world.kill()
    world.channel("t", "late")
    topic = world.home("t").topic
    assert [topic.depth_of(channel) for channel in topic.channels.values()] == [1, 0]
    # and the journal says so
    assert in_the_journal(world, "t").following


def test_what_waits_in_a_paused_topic_waits_over_kills_though_the_journal_said_that_r_goes_on() -> None:
    # given a topic whose pause ended when another channel was made, and a cut that took only that end
    world = World()
    world.channel("t", "c")
    number = world.home("t").number
    world.node.scribe.order(e.TopicPaused(number, True))
    world.kill()
    # when something is published, and the process is killed
    world.publish("t", b"a")
    world.kill()
    # then it waits for whoever comes before the pause ends
    assert world.home("t").topic.depth == 1
    assert not in_the_journal(world, "t").following


def test_a_start_without_room_for_that_word_says_it_when_there_is() -> None:
    # given a topic whose only channel was ephemeral, and a journal without room
    files = FailingFiles(MemoryFiles())
    files.make_directory(PATH)
    world = World(files)
    world.channel("t", "c#ephemeral")
    fault = files.fail(errno.ENOSPC, on="write", path="*/journal/*", times=None)
    # when it starts
    world.kill()
    assert fault.met
    assert in_the_journal(world, "t").following
    # then it says that R stands as soon as it can
    files.heal()
    world.tick()
    assert not in_the_journal(world, "t").following


def delete(world: World) -> None:
    for _ in range(4):
        world.home("t").log.delete_below(10)
        world.work()
        world.node.flush(world.home("t"))
    world.work()
    assert world.log("t").earliest > 2


@pytest.mark.parametrize("held", [True, False])
def test_only_what_is_there_is_unfinished_below_the_earliest(held: bool) -> None:
    # given two messages of which the journal says that they are unfinished, and the rest gone
    world = World(max_bytes_per_file=100)
    channel, consumer, hand = world.consume("t", "c")
    for _ in range(20):
        world.publish("t", b"x" * 30)
    world.log("t").hold([1] if held else [], 0)
    world.finish("t", channel, consumer, hand.offsets)
    number = world.node.memories[channel].number
    delete(world)
    world.node.scribe.tell(e.Progress(number, 0, 20, b"", e.pack_messages([(0, 1, e.READY), (1, 1, e.READY)])))
    # when it starts, then it knows of those that are kept aside
    world.kill()
    topic = world.home("t").topic
    assert topic.depth_of(topic.channels["c"]) == held


def test_a_channel_that_a_power_cut_left_below_the_earliest_goes_on_from_there_over_kills() -> None:
    # given a journal that does not know any more that a channel moved, and a log that begins behind that
    world = World(max_bytes_per_file=100)
    channel, consumer, hand = world.consume("t", "c")
    for _ in range(20):
        world.publish("t", b"x" * 30)
    world.finish("t", channel, consumer, hand.offsets)
    delete(world)
    world.node.scribe.tell(e.Rewound(world.node.memories[channel].number, 0))
    world.kill()
    # when its messages come again, and are finished again
    channel, consumer, hand = world.consume("t", "c")
    assert hand.offsets == [*range(world.log("t").earliest, 20)]
    world.finish("t", channel, consumer, hand.offsets)
    world.node.scribe.remember([channel])
    # then they stay finished
    world.kill()
    _, _, hand = world.consume("t", "c")
    assert hand.offsets == []


def hurt(files: MemoryFiles, path: str) -> None:
    """One bit of the file's first batch."""
    fd = files.open(path)
    (byte,) = files.read(fd, 1, 60)
    files.write(fd, bytes([byte ^ 1]), 60)
    files.close(fd)


@pytest.mark.parametrize("gone", [False, True], ids=["damaged", "gone"])
def test_channels_that_are_lost_with_the_journal_begin_at_what_is_retained(gone: bool) -> None:
    # given two channels, one of which has finished a message; and one that is deferred
    files = MemoryFiles()
    files.make_directory(PATH)
    world = World(files, retention_bytes=1 << 20)
    for name in ("c", "d"):
        world.channel("t", name)
    world.kill()
    for _ in range(4):  # the journal is made anew
        world.tick()
    channel, consumer, _ = world.consume("t", "c")
    world.publish("t", b"a", b"b")
    world.node.defer(world.home("t"), [b"later"], 60 * S, Ticket())
    world.finish("t", channel, consumer, [0])
    world.tick()
    world.publish("t", b"c")
    world.tick()
    # when the journal's beginning is damaged, or all of it is gone
    (journal,) = [path for path in files.tree() if "/journal/" in path]
    world.node.data_path.abandon()
    files.unlink(journal) if gone else hurt(files, journal)
    world.start()
    # then both are given all there is, also when it is due, and a line says so
    hands = [world.consume("t", name)[2] for name in ("c", "d")]
    assert [hand.offsets for hand in hands] == [[0, 1, 2], [0, 1, 2]]
    world.tick(57)  # and the others have not timed out
    world.tick(0)
    assert [hand.offsets[3:] for hand in hands] == [[3], [3]]
    assert sum("is lost from the journal" in line for line in world.lines) == 2


def test_a_channel_that_was_deleted_stays_deleted_where_nothing_is_damaged() -> None:
    # given an nsqd.dat that was written before a channel was deleted
    world = World()
    world.channel("t", "c")
    world.channel("t", "d")
    world.publish("t", b"a")
    world.tick()
    world.node.delete_channel(world.home("t"), "d")
    world.kill()
    assert list(world.home("t").topic.channels) == ["c"]


def test_what_a_power_cut_took_is_called_lost_however_often_the_journal_is_made_anew() -> None:
    # given a log that goes on behind what a cut may have taken, and a range that was emptied
    world = World(retention_bytes=1 << 20)
    world.channel("t", "c")
    world.publish("t", b"a")
    world.tick()
    world.boot = "another"
    world.kill()
    world.publish("t", b"b")
    world.node.pause_topic(world.home("t"), True)
    world.publish("t", b"c")
    world.node.empty_topic(world.home("t"))
    expected = [hole.why for hole in world.log("t").holes(0, world.log("t").end)]
    # when the journal is made anew, and read again
    for _ in range(2):
        world.kill()
        for _ in range(4):
            world.tick()
    # then readers are told the same
    assert expected == ["lost", "emptied"]
    assert [hole.why for hole in world.log("t").holes(0, world.log("t").end)] == expected


def test_what_came_back_is_in_the_journal_that_is_made_anew_at_once_with_a_flush_each() -> None:
    # given a node that flushes before it answers, whose journal is gone
    files = MemoryFiles()
    files.make_directory(PATH)
    world = World(files, sync_every=1)
    for name in ("c", "d"):
        world.channel("t", name)
    world.publish("t", b"a")
    world.work()
    world.tick()
    world.node.data_path.abandon()
    files.unlink(*[path for path in files.tree() if "/journal/" in path])
    # when it starts, makes its journal anew, and is killed
    world.start()
    for _ in range(4):
        world.tick()
    world.kill()
    # then the next one knows them
    assert sum("is lost from the journal" in line for line in world.lines) == 2
    assert list(world.home("t").topic.channels) == ["c", "d"]
