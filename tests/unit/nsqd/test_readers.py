"""Readers of a node: what they hold, what is remembered of them, and when they go."""

from __future__ import annotations

import errno

import pytest

from penstock.errors import LogError, NameTaken
from penstock.log.entries import ReaderMoved
from penstock.log.files import replace
from penstock.log.state import NodeState
from tests.kit import FailingFiles, MemoryFiles
from tests.unit.nsqd.world import PATH, S, World

DAY = 24 * 3600


def commit(world: World, offset: int, topic: str = "t", name: str = "q") -> tuple[int, bool]:
    reader, moved = world.node.readers.commit(world.home(topic), name, offset)
    return reader.offset, moved


def journalled(world: World) -> NodeState:
    state = NodeState()
    state.apply_all(world.node.scribe.journal.replay())
    return state


def world_with(messages: int, **options: int) -> World:
    """A topic of some segments, of which a channel has finished all."""
    world = World(max_bytes_per_file=2000, **options)
    channel, consumer, hand = world.consume("t", "c", ready=messages)
    for _ in range(messages):
        world.publish("t", b"x" * 100)
    world.finish("t", channel, consumer, hand.offsets)
    return world


def test_what_a_reader_has_not_read_is_kept() -> None:
    # given messages that every channel has finished, nothing of which is retained
    world = world_with(100)
    commit(world, 0)
    for _ in range(4):
        world.tick()
    assert world.log("t").earliest == 0
    # when the reader goes on, then what lies behind it goes
    commit(world, 50)
    for _ in range(4):
        world.tick()
    assert 30 <= world.log("t").earliest <= 50
    assert world.bodies("t", [50]) == [b"x" * 100]
    # and all of it when the reader is gone
    world.node.readers.delete(world.home("t"), world.home("t").topic.readers["q"])
    for _ in range(4):
        world.tick()
    assert world.log("t").earliest > 80


def test_stragglers_are_not_copied_aside_from_under_a_reader() -> None:
    world = world_with(100)
    commit(world, 10)
    channel = world.channel("t", "c")
    channel.unfinished.put(3, 1, None)
    for _ in range(4):
        world.tick()
    assert world.log("t").earliest == 0


def test_a_first_commit_below_what_is_kept_stands_where_that_begins() -> None:
    world = world_with(100)
    for _ in range(4):
        world.tick()
    earliest = world.log("t").kept_from
    assert earliest > 0
    assert commit(world, 0) == (earliest, False)
    assert commit(world, earliest) == (earliest, True)


def test_a_reader_that_a_power_cut_brings_back_stands_where_what_is_kept_begins() -> None:
    # given a reader that was dropped, what it held is gone, and the journal does not know of the first
    world = world_with(100)
    commit(world, 10)
    number = world.home("t").number
    world.node.readers.delete(world.home("t"), world.home("t").topic.readers["q"])
    for _ in range(4):
        world.tick()
    earliest = world.log("t").earliest
    assert earliest > 10
    world.node.scribe.order(ReaderMoved(number, "q", 10, world.clock.wall, False))
    # when it starts
    world.kill()
    assert world.home("t").topic.readers["q"].offset == earliest


@pytest.mark.parametrize("end", [World.kill, World.restart])
def test_readers_are_as_they_were(end: object) -> None:
    # given readers, one paused, one deleted, one that went back in vain
    world = World()
    world.publish("t", b"a", b"b", b"c")
    for name in ("q", "paused", "deleted"):
        commit(world, 2, name=name)
    assert commit(world, 1) == (2, False)
    readers = world.home("t").topic.readers
    world.node.readers.pause(world.home("t"), readers["paused"], True)
    world.node.readers.delete(world.home("t"), readers["deleted"])
    # when the process ends, in whatever way
    end(world)  # type: ignore[operator]
    # then the next one has the same
    readers = world.home("t").topic.readers
    assert {name: (reader.offset, reader.paused) for name, reader in readers.items()} == {
        "q": (2, False),
        "paused": (2, True),
    }
    # and a paused one is told nothing new
    assert world.node.readers.look(world.home("t"), "paused") == 2
    assert world.node.readers.look(world.home("t"), "q") == 3


def test_readers_are_in_what_a_compaction_says() -> None:
    world = World()
    world.publish("t", b"a", b"b")
    commit(world, 1)
    world.node.scribe.journal._whole = False
    for _ in range(6):
        world.tick()
    assert not world.node.scribe.journal.compacting
    assert [(reader.name, reader.offset) for reader in journalled(world).readers.values()] == [("q", 1)]


def test_a_reader_goes_with_its_topic() -> None:
    world = World()
    world.publish("t", b"a")
    commit(world, 1)
    world.node.delete_topic(world.home("t"))
    world.publish("t", b"a")
    world.kill()
    assert world.home("t").topic.readers == {}


def test_an_ephemeral_topic_has_readers_that_are_not_written_down() -> None:
    world = World()
    world.publish("t#ephemeral", b"a")
    before = world.node.scribe.journal.end
    assert commit(world, 1, "t#ephemeral") == (1, True)
    assert world.node.scribe.journal.end == before
    world.node.readers.delete(world.home("t#ephemeral"), world.home("t#ephemeral").topic.readers["q"])


# --- names


def test_no_channel_has_a_readers_name() -> None:
    world = World()
    world.publish("t", b"a")
    commit(world, 1)
    with pytest.raises(NameTaken, match="t:q is a reader"):
        world.channel("t", "q")
    assert "q" not in world.home("t").topic.channels


def test_a_readers_name_in_a_foreign_metadata_file_makes_no_channel() -> None:
    world = World()
    world.publish("t", b"a")
    commit(world, 1)
    world.restart()
    replace(world.files, f"{PATH}/nsqd.dat", b'{"topics":[{"name":"t","channels":[{"name":"q"},{"name":"c"}]}]}')
    world.kill()
    assert list(world.home("t").topic.channels) == ["c"]
    assert list(world.home("t").topic.readers) == ["q"]


# --- time


def test_a_reader_that_nobody_renews_is_dropped() -> None:
    # given a reader that a query renews by looking, and one that nobody looks at
    world = World()
    world.publish("t", b"a", b"b")
    home = world.home("t")
    commit(world, 1, name="looked at")
    commit(world, 1, name="left")
    for _ in range(8):
        world.node.readers.look(home, "looked at")
        world.tick(DAY)
    # then only that one is dropped, and somebody is told
    assert list(home.topic.readers) == ["looked at"]
    assert any("reader(left) is dropped" in line for line in world.lines)
    # and it stays so
    world.kill()
    assert list(world.home("t").topic.readers) == ["looked at"]


def test_looks_are_written_down_now_and_then() -> None:
    world = World(reader_timeout=1000 * S)
    world.publish("t", b"a")
    commit(world, 0)
    before = world.node.scribe.journal.end
    for _ in range(100):
        world.node.readers.look(world.home("t"), "q")
        world.clock.wall += 10 * S
    assert world.node.scribe.journal.end - before == 9


def test_while_the_node_was_down_nobody_could_renew_a_reader() -> None:
    # given a reader, and a node that is down for longer than its timeout
    world = World()
    world.publish("t", b"a")
    commit(world, 0)
    world.restart()
    world.clock.wall += 8 * DAY * S
    world.kill()
    # then it is not dropped at once
    world.tick(DAY // 2)
    assert list(world.home("t").topic.readers) == ["q"]
    # but soon, however often the node is started again
    world.kill()
    world.tick(DAY)
    assert world.home("t").topic.readers == {}


def test_without_a_timeout_no_reader_is_dropped() -> None:
    world = World(reader_timeout=0)
    world.publish("t", b"a")
    commit(world, 0)
    world.tick(1000 * DAY)
    assert list(world.home("t").topic.readers) == ["q"]
    # and so no look has to be written down
    before = world.node.scribe.journal.end
    world.node.readers.look(world.home("t"), "q")
    assert world.node.scribe.journal.end == before


# --- a disk that fails


def test_what_the_journal_does_not_take_is_not_done() -> None:
    memory = MemoryFiles()
    memory.make_directory(PATH)
    files = FailingFiles(memory)
    world = World(files)
    world.publish("t", b"a", b"b")
    commit(world, 1)
    reader = world.home("t").topic.readers["q"]
    files.fail(errno.ENOSPC, on="write", path="*/journal/*", times=None)
    for change in (
        lambda: commit(world, 2),
        lambda: commit(world, 2, name="new"),
        lambda: world.node.readers.pause(world.home("t"), reader, True),
        lambda: world.node.readers.delete(world.home("t"), reader),
    ):
        with pytest.raises(LogError):
            change()
    assert world.home("t").topic.readers == {"q": reader}
    assert (reader.offset, reader.paused) == (1, False)
    # a look says what there is all the same, and one that is to be dropped is tried again
    world.clock.wall += 8 * DAY * S
    assert world.node.readers.look(world.home("t"), "q") == 2
    world.tick()
    assert world.home("t").topic.readers == {"q": reader}
    files.heal()
    world.tick()
    assert world.home("t").topic.readers == {}
