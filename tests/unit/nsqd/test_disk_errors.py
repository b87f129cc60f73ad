"""Files that cannot be opened or read for a while: the node goes on, and does it when it can."""

from __future__ import annotations

import errno

from tests.kit import FailingFiles, MemoryFiles
from tests.unit.nsqd.world import PATH, World


def test_a_flush_that_finds_no_descriptor_is_made_by_a_later_tick() -> None:
    # given messages of two topics, and files that cannot be opened any more
    files = FailingFiles(MemoryFiles())
    files.make_directory(PATH)
    world = World(files)
    for topic in ("a", "b"):
        world.publish(topic, b"1")
        world.work()
        world.publish(topic, b"2")
    disk = world.node.data_path.disk
    disk.close_all()
    fault = files.fail(errno.EMFILE, on="open", times=None)
    # when a tick wants to flush them, then it does what else it can
    world.tick()
    assert fault.met
    # and once they can be opened, all is flushed
    files.heal()
    world.tick()
    world.tick()
    assert [world.log(topic).flushed for topic in ("a", "b")] == [2, 2]
    assert world.node.scribe.journal.flushed == world.node.scribe.journal.end


def test_a_consumer_gets_what_could_not_be_read_once_it_can_be() -> None:
    # given a node that was started on a topic with a message, and files that cannot be read
    files = FailingFiles(MemoryFiles())
    files.make_directory(PATH)
    world = World(files)
    world.channel("t", "c")
    world.publish("t", b"1")
    world.restart()
    world.work()
    fault = files.fail(errno.EIO, on=("read", "read_now"), path="*/t@*.log", times=None)
    # when a consumer wants it, then it gets nothing, and nobody else is hindered
    _, _, hand = world.consume("t", "c")
    world.tick()
    assert fault.met
    assert hand.offsets == []
    # and it comes by itself when the disk is well
    files.heal()
    world.tick()
    assert hand.offsets == [0]
