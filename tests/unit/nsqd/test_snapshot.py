"""What a compaction says of a node that goes on meanwhile."""

from __future__ import annotations

import errno
from array import array

import pytest

from penstock.log import entries as e
from penstock.nsqd import snapshot
from penstock.nsqd.snapshot import MESSAGES, Snapshot
from tests.kit import FailingFiles, MemoryFiles
from tests.unit.nsqd.world import PATH, World


def finish(world: World) -> None:
    """The slices that are missing, and the flushes that make the file the only one."""
    journal = world.node.scribe.journal
    while journal.write_slice(world.clock.wall):
        pass
    while work := journal.flush_work():
        work()
    assert not journal.compacting


@pytest.mark.parametrize("slices", range(6))
def test_a_channel_that_is_made_amid_a_compaction_is_in_it(monkeypatch: pytest.MonkeyPatch, slices: int) -> None:
    # given a compaction that says the topics one by one
    monkeypatch.setattr(snapshot, "THINGS", 1)
    world = World()
    for topic in ("t", "u"):
        world.channel(topic, "c")
    journal = world.node.scribe.journal
    journal.compact(Snapshot(world.node))
    for _ in range(slices):
        journal.write_slice(world.clock.wall)
    # when each gets another channel, whether it was said or not
    for topic in ("t", "u"):
        world.channel(topic, "d")
    finish(world)
    # then a start finds both
    world.kill()
    assert [sorted(home.topic.channels) for home in world.node.homes.values()] == [["c", "d"]] * 2


@pytest.mark.parametrize("step", [1, 3, 5000])
def test_a_crowd_of_unfinished_messages_is_said_in_slices_of_a_few_thousand(step: int) -> None:
    # given a channel with many, close together or far apart
    world = World()
    channel = world.channel("t", "c")
    count = 3 * MESSAGES
    for number in range(count):
        channel.unfinished.take(number * step, 1, 1, world.clock.now, 60)
    channel.cursor = channel.limit = count * step
    # when a compaction says them
    said, mark = Snapshot(world.node), None
    pages: list[list[e.Message]] = []
    while True:
        entries, mark = said(mark)
        pages += [list(e.unpack_messages(entry.unfinished)) for entry in entries if isinstance(entry, e.Page)]
        if mark is None:
            break
    # then each is said once, and no slice says too many
    assert [message.offset for page in pages for message in page] == [number * step for number in range(count)]
    assert max(map(len, pages)) <= 2 * MESSAGES
    assert len(pages) >= 2


def test_what_happens_below_the_cursor_is_said_by_the_pages_in_which_it_did() -> None:
    # given messages in three pages, of which the journal knows
    world = World()
    channel = world.channel("t", "c")
    channel.unfinished.take(0, 3000, 1, world.clock.now, 60)
    channel.cursor = 3000
    memory = world.node.memories[channel]
    memory.changes()
    # when one is finished, and one more is handed out
    channel.unfinished.finish(array("Q", [5]), 0, 1, 0, 1)
    channel.unfinished.take(3000, 1, 1, world.clock.now, 60)
    channel.cursor = 3001
    # then its page is said anew, and the page at the cursor, and no other
    [said] = memory.changes()
    assert isinstance(said, e.Progress)
    assert list(e.unpack_ranges(said.finished)) == [(0, 1024), (2048, 3000)]
    offsets = [message.offset for message in e.unpack_messages(said.unfinished)]
    assert offsets == [*range(5), *range(6, 1024), *range(2048, 3001)]
    # and then there is nothing to say
    assert memory.changes() == []


def test_a_deleted_topic_whose_folder_could_not_go_stays_deleted_over_a_compaction() -> None:
    # given a topic that is deleted while its folder cannot be moved
    memory = MemoryFiles()
    memory.make_directory(PATH)
    files = FailingFiles(memory)
    world = World(files)
    world.publish("t", b"a")
    world.work()
    files.fail(errno.EIO, on="rename", path="*/topics/t@*", times=None)
    world.node.delete_topic(world.home("t"))
    # when the journal is made anew without a word of what was before, and the node is killed
    world.node.scribe.journal.compact(Snapshot(world.node))
    finish(world)
    world.kill()
    # then it is not there
    assert world.node.homes == {}


def test_a_folder_that_could_not_go_goes_with_the_next_round() -> None:
    memory = MemoryFiles()
    memory.make_directory(PATH)
    files = FailingFiles(memory)
    world = World(files)
    world.publish("t", b"a")
    world.work()
    files.fail(errno.EIO, on="rename", path="*/topics/t@*", times=1)
    world.node.delete_topic(world.home("t"))
    assert world.node.remains
    world.tick()
    assert not world.node.remains
    assert not list(memory.list(f"{PATH}/topics"))
