"""Retention as a node drives it: what is consumed goes, what anybody needs stays."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from penstock.errors import DiskFull
from penstock.log.entries import NODES
from penstock.log.retention import Limits
from tests.kit import FailingFiles, MemoryFiles
from tests.unit.nsqd.world import PATH, S, World

BODY = b"x" * 100


SEGMENT = 4000  # bytes: the room for 20 messages of 200


def world_with(messages: int, **options: int) -> World:
    """A topic of twenty messages a segment."""
    world = World(max_bytes_per_file=SEGMENT, **options)
    world.channel("t", "c")
    for number in range(0, messages, 5):
        world.publish("t", *(b"%4d" % each + BODY[4:] for each in range(number, number + 5)))
    return world


def test_what_every_channel_has_finished_is_deleted() -> None:
    # given two channels, of which one has finished everything, and a topic of several segments
    world = world_with(100)
    channel, consumer, hand = world.consume("t", "c")
    world.channel("t", "d")
    other, slow, held = world.consume("t", "d")
    other.rewind(0)
    world.node.pump(other)
    world.finish("t", channel, consumer, hand.offsets)
    # when time passes
    world.tick()
    # then nothing is deleted that the other one has not finished
    assert world.log("t").earliest == 0
    # when that one finishes the first half
    world.finish("t", other, slow, held.offsets[:50])
    world.tick()
    world.tick()
    # then the segments in front of that go, and what is left is there
    assert 20 <= world.log("t").earliest <= 50
    assert world.bodies("t", [50]) == [b"  50" + BODY[4:]]


def test_what_is_consumed_is_retained_as_long_as_the_limits_say() -> None:
    # given limits that keep ten seconds, whatever the size
    world = world_with(100, retention_bytes=1 << 30, retention_time=10 * S)
    channel, consumer, hand = world.consume("t", "c")
    world.finish("t", channel, consumer, hand.offsets)
    world.tick()
    assert world.log("t").earliest == 0
    # when that time is over, although nothing happens to the topic any more
    for _ in range(8):
        world.tick()
    # then it is gone
    assert world.log("t").earliest > 0


@pytest.mark.parametrize("end", [World.kill, World.restart, lambda world: None], ids=["kill", "restart", "go-on"])
def test_a_topic_may_retain_less_than_others(end: Callable[[World], None]) -> None:
    # given two topics that retain what is consumed
    world = World(max_bytes_per_file=SEGMENT, retention_bytes=1 << 30)
    for topic in ("kept", "t"):
        channel, consumer, hand = world.consume(topic, "c")
        world.publish(topic, BODY)
        for _ in range(50):
            world.publish(topic, BODY)
        world.finish(topic, channel, consumer, hand.offsets)
    world.tick()
    # when one of them is to retain nothing, whatever process carries it out
    world.node.retain(world.home("t"), Limits(0, NODES))
    end(world)
    for _ in range(4):
        world.tick()
    # then what is consumed of it goes, and of the other stays
    assert world.log("t").earliest > 30
    assert world.log("kept").earliest == 0


def test_what_a_topic_retains_is_in_what_a_compaction_says() -> None:
    world = World()
    world.publish("t", BODY)
    world.node.retain(world.home("t"), Limits(7, 8))
    world.node.scribe.journal._whole = False
    for _ in range(6):
        world.tick()
    assert not world.node.scribe.journal.compacting
    world.kill()
    assert world.home("t").retention == Limits(7, 8)


def test_a_topic_without_channels_keeps_everything() -> None:
    world = World(max_bytes_per_file=SEGMENT)
    for _ in range(50):
        world.publish("t", BODY)
    world.tick()
    world.tick()
    assert world.log("t").earliest == 0


def test_a_node_keeps_no_more_than_its_total() -> None:
    # given two topics that may each keep everything, and a total that is smaller
    world = World(max_bytes_per_file=SEGMENT, retention_bytes=1 << 30, retention_total_bytes=8000)
    for topic in ("old", "new"):
        channel, consumer, hand = world.consume(topic, "c")
        for _ in range(50):
            world.publish(topic, BODY)
        world.finish(topic, channel, consumer, hand.offsets)
        world.tick(3)
    world.tick()
    # then the older one goes first, and no more than needed
    closed = sum(segment.position for name in ("old", "new") for segment in world.log(name).chain.segments[:-1])
    assert closed <= 8000
    assert world.log("old").earliest > 0 == world.log("new").earliest


def test_a_few_stragglers_do_not_keep_a_segment() -> None:
    # given everything finished but two messages
    world = world_with(100)
    channel, consumer, hand = world.consume("t", "c")
    world.finish("t", channel, consumer, [offset for offset in hand.offsets if offset not in (3, 30)])
    # when time passes
    for _ in range(8):
        world.tick()
    # then the segments are gone, and they are still delivered again
    log = world.log("t")
    assert log.earliest >= 70
    assert list(log.held._offsets) == [3, 30]
    channel.leave(consumer, world.clock.now, (), aborted=False)
    _, other, again = world.consume("t", "c")
    assert sorted(again.offsets) == [3, 30]
    assert world.bodies("t", [3]) == [b"   3" + BODY[4:]]
    # when they are finished too
    world.finish("t", channel, other, again.offsets)
    world.tick()
    world.tick()
    # then nothing is held any more
    assert len(log.held) == 0


def test_stragglers_live_through_a_kill() -> None:
    world = world_with(100)
    channel, consumer, hand = world.consume("t", "c")
    world.finish("t", channel, consumer, [offset for offset in hand.offsets if offset != 5])
    for _ in range(8):
        world.tick()
    assert world.log("t").earliest > 5
    world.kill()
    _, _, again = world.consume("t", "c")
    assert again.offsets == [5]
    assert world.bodies("t", [5]) == [b"   5" + BODY[4:]]


def test_a_straggler_is_held_however_long_the_device_takes_to_delete() -> None:
    # given a message that is not finished, and threads that come to nothing for some rounds
    world = world_with(100)
    channel, consumer, hand = world.consume("t", "c")
    world.finish("t", channel, consumer, [offset for offset in hand.offsets if offset != 5])
    for _ in range(4):
        world.clock.now += 2 * S
        world.clock.wall += 2 * S
        world.node.tick()
    assert world.log("t").earliest == 0
    # when they do what they were given, then its segment goes and it does not
    world.work()
    assert world.log("t").earliest > 5
    assert world.bodies("t", [5]) == [b"   5" + BODY[4:]]


def test_a_full_disk_takes_what_is_consumed_and_then_heals() -> None:
    # given a topic that retains what was consumed, and a disk that is full
    files = MemoryFiles()
    files.make_directory(PATH)
    world = World(files, max_bytes_per_file=16_000, retention_bytes=1 << 30)
    channel, consumer, hand = world.consume("t", "c")
    for _ in range(500):
        world.publish("t", BODY)
    world.finish("t", channel, consumer, hand.offsets)
    files.capacity = files.used + 8192
    # when somebody publishes, the answer is an error
    (error,) = world.publish("t", BODY * 1000).answers
    assert isinstance(error, DiskFull)
    # then what was consumed yields, and the next one is taken
    world.work()
    assert world.publish("t", BODY * 100).answers == [None]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_straggler_that_cannot_be_copied_keeps_its_segment(code: int) -> None:
    memory = MemoryFiles()
    memory.make_directory(PATH)
    files = FailingFiles(memory)
    world = World(files, max_bytes_per_file=SEGMENT)
    channel, consumer, hand = world.consume("t", "c")
    for _ in range(50):
        world.publish("t", BODY)
    world.finish("t", channel, consumer, [offset for offset in hand.offsets if offset != 5])
    files.fail(code, on="write", path="*/held/*", times=None)
    for _ in range(4):
        world.tick()
    assert world.log("t").earliest == 0
    assert world.bodies("t", [5]) == [BODY]


@pytest.mark.parametrize("call", ["unlink", "rename"])
def test_what_cannot_be_deleted_now_goes_with_a_later_tick(call: str) -> None:
    # given consumed messages, and files of the topic that cannot be removed, nor topic.json be written anew
    memory = MemoryFiles()
    memory.make_directory(PATH)
    files = FailingFiles(memory)
    world = World(files, max_bytes_per_file=SEGMENT)
    channel, consumer, hand = world.consume("t", "c")
    for _ in range(100):
        world.publish("t", BODY)
    world.tick()
    world.finish("t", channel, consumer, hand.offsets)
    fault = files.fail(errno.EIO, on=call, path="*/t@*", times=None)
    # when time passes, then each tick tries it once, and says why it does not work
    world.tick()
    world.tick()
    assert fault.met
    assert 1 <= len([line for line in world.lines if "TOPIC(t)" in line and "Input/output error" in line]) <= 2
    # and it is gone once that works
    files.heal()
    world.tick()
    world.tick()
    assert world.log("t").earliest > 50
    assert len([name for name, _ in memory.list(world.log("t").directory) if name.endswith(".log")]) < 3
