"""What users ask of a node, and what is there after it was killed, restarted, or met a failing disk."""

from __future__ import annotations

import errno
import json
from contextlib import suppress

import pytest

from penstock.errors import FlushFailed, PenstockError, Refused
from penstock.log.files import read_whole, replace
from penstock.nsqd.node import PACE
from tests.kit import FailingFiles, MemoryFiles
from tests.unit.nsqd.world import PATH, S, Ticket, World


def test_what_was_published_before_a_channel_came_is_for_the_first_one() -> None:
    # given messages, then a channel, then another
    world = World()
    world.publish("t", b"a", b"b")
    _, _, first = world.consume("t", "c")
    _, _, second = world.consume("t", "d")
    world.publish("t", b"c")
    # then the first gets all, the second what came later
    assert first.offsets == [0, 1, 2]
    assert second.offsets == [2]


@pytest.mark.parametrize("end", [World.kill, World.restart])
def test_topics_channels_and_their_pauses_are_as_they_were(end: object) -> None:
    # given topics and channels, some paused, some deleted
    world = World()
    for topic in ("t", "u", "v"):
        for channel in ("c", "d"):
            world.channel(topic, channel)
    world.node.pause_channel(world.channel("t", "c"), True)
    world.node.pause_topic(world.home("u"), True)
    world.node.delete_channel(world.home("u"), "d")
    world.node.delete_topic(world.home("v"))
    # when the process ends, in whatever way
    end(world)  # type: ignore[operator]
    # then the next one has the same
    assert sorted(world.node.homes) == ["t", "u"]
    assert {name: sorted(home.topic.channels) for name, home in world.node.homes.items()} == {
        "t": ["c", "d"],
        "u": ["c"],
    }
    assert world.channel("t", "c").paused
    assert not world.channel("t", "d").paused
    assert world.home("u").topic.paused


def test_what_waited_for_a_first_channel_still_waits_after_a_kill() -> None:
    world = World()
    world.publish("t", b"a", b"b")
    world.kill()
    assert world.home("t").topic.depth == 2
    assert world.consume("t", "c")[2].offsets == [0, 1]


def test_finishes_are_remembered_by_the_next_process() -> None:
    # given three messages of which two are finished, and a tick
    world = World()
    channel, consumer, hand = world.consume("t", "c")
    world.publish("t", b"a", b"b", b"c")
    world.finish("t", channel, consumer, hand.offsets[:2])
    world.tick()
    # when it is killed, then only the third comes again
    world.kill()
    assert world.consume("t", "c")[2].offsets == [2]


@pytest.mark.parametrize(("retention", "known"), [(0, 4), (1000, 6)], ids=["others deleted", "others kept"])
def test_a_log_whose_last_file_is_gone_gives_out_no_offset_that_a_channel_had(retention: int, known: int) -> None:
    # given messages in two files, and a channel that had most of them
    world = World(max_bytes_per_file=200, retention_bytes=retention)
    channel, consumer, hand = world.consume("t", "c")
    for number in range(6):
        world.publish("t", b"%d" % number)
    world.finish("t", channel, consumer, hand.offsets[:-1])
    world.tick()
    # when the last of them are lost while the node is down, with their index
    log = world.log("t")
    last, first = log.chain.segments[-1].path, log.chain.segments[-1].first
    assert 0 < first < 6
    for path in (last, last.removesuffix("log") + "index"):
        if world.files.exists(path):
            world.files.unlink(path)
    world.kill()
    # then somebody is told, nothing waits, and what comes is none of what the channel had
    (damage,) = world.node.data_path.disk.damages
    assert (damage.first, damage.next) == (first, known)
    topic = world.home("t").topic
    assert topic.depth == topic.depth_of(world.channel("t", "c")) == 0
    world.publish("t", b"new")
    offsets = world.consume("t", "c")[2].offsets
    assert world.bodies("t", offsets) == [b"new"]
    assert offsets[0] > 5


def test_an_ephemeral_channel_that_was_the_only_one_took_its_messages_with_it() -> None:
    # given a topic that only an ephemeral channel ever read
    world = World()
    _, _, hand = world.consume("t", "tail#ephemeral")
    world.publish("t", b"a", b"b")
    assert hand.offsets == [0, 1]
    # when the process is killed, then nothing waits for a channel to come, and R stands
    world.kill()
    assert world.home("t").topic.depth == 0
    world.publish("t", b"c")
    world.kill()
    assert world.home("t").topic.depth == 1


def test_the_consumers_of_what_is_deleted_are_sent_away() -> None:
    world = World()
    _, _, one = world.consume("t", "c")
    _, _, two = world.consume("t", "d")
    world.node.delete_channel(world.home("t"), "c")
    assert (one.ended, two.ended) == (True, False)
    world.node.delete_topic(world.home("t"))
    assert two.ended
    assert not world.node.memories
    assert not world.node.home_of


def test_an_ephemeral_topic_goes_with_its_last_channel() -> None:
    world = World()
    world.consume("t#ephemeral", "c")
    world.node.delete_channel(world.home("t#ephemeral"), "c")
    assert not world.node.homes


def test_who_publishes_to_a_topic_that_is_deleted_gets_an_answer() -> None:
    # given one whose publish is written, and one whose publish waits for a flush
    world = World(sync_every=1)
    flushed = world.publish("t", b"a")
    world.work()
    waiting = world.publish("t", b"b")
    assert (flushed.answers, waiting.answers) == ([None], [])
    # when the topic is deleted, then the second one is told that it failed
    world.node.delete_topic(world.home("t"))
    assert isinstance(waiting.answers[0], Refused)
    # and what threads still had to do with it harms nobody
    world.work()
    assert world.node.refused is None
    assert world.publish("t", b"c").answers == []
    world.work()
    assert world.home("t").log.end == 1


def test_a_deleted_topic_and_its_files_stay_gone() -> None:
    world = World()
    world.publish("t", b"a")
    world.node.delete_topic(world.home("t"))
    world.kill()
    world.work()
    assert not world.node.homes
    assert list(world.files.list(f"{PATH}/topics")) == []


def test_a_topic_whose_folder_is_gone_is_made_again_with_its_channels() -> None:
    # given a topic with a paused channel, and somebody who removes its folder
    world = World()
    world.node.pause_channel(world.channel("t", "c"), True)
    world.publish("t", b"a")
    folder = world.log("t").directory
    world.node.data_path.abandon()
    for name, _ in list(world.files.list(folder)):
        world.files.unlink(f"{folder}/{name}")
    world.files.remove_directory(folder)
    # when nsqd starts, then the topic is there, empty, and so is the channel, paused
    world.start()
    assert world.home("t").log.end == 0
    assert world.channel("t", "c").paused
    assert any("its log is gone" in line for line in world.lines)


@pytest.mark.parametrize("calls", range(8))
def test_a_kill_while_a_topic_is_made_again_costs_none_of_its_channels(calls: int) -> None:
    # given a topic with two channels whose folder is gone, and a start that is killed at some call
    files = FailingFiles(MemoryFiles())
    files.make_directory(PATH)
    world = World(files)
    for name in ("one", "two"):
        world.channel("t", name)
    world.node.data_path.abandon()
    folder = world.log("t").directory
    for name, _ in list(files.list(folder)):
        files.unlink(f"{folder}/{name}")
    files.remove_directory(folder)
    files.fail(errno.EIO, on="write", skip=calls, times=None)
    with suppress(PenstockError):
        world.start()
    world.node.data_path.abandon()
    # when nsqd starts again, then both are there
    files.heal()
    world.start()
    assert sorted(world.home("t").topic.channels) == ["one", "two"]


def test_of_a_topic_whose_making_was_killed_before_its_small_file_was_there_nothing_is_left() -> None:
    world = World()
    world.node.data_path.abandon()
    world.files.make_directory(f"{PATH}/topics/t@0123456789abcdef")
    world.start()
    world.work()
    assert not world.node.homes
    assert list(world.files.list(f"{PATH}/topics")) == []


def test_an_emptied_topic_and_channel_stay_empty() -> None:
    world = World()
    world.publish("t", b"a")
    world.node.empty_topic(world.home("t"))
    channel = world.channel("t", "c")
    world.publish("t", b"b")
    world.node.empty_channel(channel)
    world.publish("t", b"c")
    assert world.home("t").topic.depth_of(channel) == 1
    world.kill()
    assert world.consume("t", "c")[2].offsets == [2]


def test_a_topic_that_nothing_happens_to_costs_a_tick_nothing() -> None:
    # given topics with channels, written down and flushed
    world = World()
    for number in range(20):
        world.channel(f"t{number}", "c")
    for _ in range(4):
        world.tick()
    # then nobody looks at them any more
    assert not world.node._awake
    # until something happens to one
    world.publish("t7", b"a")
    assert [home.topic.name for home in world.node._awake] == ["t7"]


def test_a_failed_flush_refuses_one_topic_and_heals() -> None:
    # given two topics, and a flush that fails for one
    memory = MemoryFiles()
    memory.make_directory(PATH)
    files = FailingFiles(memory)
    world = World(files, sync_every=1)
    for topic in ("good", "bad"):
        world.publish(topic, b"a")
    world.work()
    files.fail(errno.EIO, on="flush", path="*bad@*/*.log")
    waiting = world.publish("bad", b"b")
    good = world.publish("good", b"b")
    world.work()
    # then who waited is told, and /ping says so although the other one is well
    assert good.answers == [None]
    assert waiting.answers[0] is not None
    assert world.node.refused is not None
    # when time passes, then it heals
    world.tick()
    assert world.node.refused is None
    after = world.publish("bad", b"c")
    world.work()
    assert after.answers == [None]


def test_sync_every_0_flushes_by_time_only() -> None:
    world = World(sync_every=0)
    world.publish("t", b"a")
    world.work()  # the first flush makes the topic's files last
    for _ in range(10):
        world.publish("t", b"a")
    assert not world.works
    world.tick()
    assert world.log("t").flushed == 11


def test_a_busy_topic_is_flushed_a_hundred_times_a_second_and_its_last_message_too() -> None:
    # given a topic that was flushed a moment ago
    world = World(sync_every=2)
    world.publish("t", b"a", b"b")
    world.work()
    # when it is given as much as a flush is due for
    world.publish("t", b"c", b"d")
    # then the flush waits
    assert not world.works
    assert world.log("t").flushed == 2
    # and its time comes, without another publish
    assert world.node.next_time() == world.clock.now + PACE
    world.tick(PACE / 10**9)
    assert world.log("t").flushed == 4


def test_a_publish_that_waits_for_its_flush_waits_for_no_other_time() -> None:
    world = World(sync_every=1)
    tickets = []
    for _ in range(3):
        tickets.append(world.publish("t", b"a"))
        world.work()
    assert [ticket.answers for ticket in tickets] == [[None]] * 3


# --- nsqd.dat


def test_nsqd_dat_is_the_original_s() -> None:
    world = World()
    world.node.pause_channel(world.channel("t", "c"), True)
    world.channel("t", "d#ephemeral")
    world.channel("u#ephemeral", "c")
    world.tick()
    data = json.loads(read_whole(world.files, f"{PATH}/nsqd.dat"))
    assert data["topics"] == [{"name": "t", "paused": False, "channels": [{"name": "c", "paused": True}]}]
    assert data["version"] == "1.3.0"


def test_an_nsqd_dat_of_somebody_else_is_merged() -> None:
    # given a node, and an nsqd.dat that somebody wrote for it
    world = World()
    world.channel("t", "c")
    world.restart()
    foreign = {"topics": [{"name": "t", "paused": True, "channels": [{"name": "new", "paused": True}]}, {"name": "u"}]}
    replace(world.files, f"{PATH}/nsqd.dat", json.dumps(foreign).encode())
    # when it starts, then it has both
    world.kill()
    assert sorted(world.node.homes) == ["t", "u"]
    assert sorted(world.home("t").topic.channels) == ["c", "new"]
    assert world.home("t").topic.paused
    assert world.channel("t", "new").paused


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"topics":3}', b'{"topics":[3]}', b'{"topics":[{"x":1}]}'])
def test_an_nsqd_dat_that_is_none_is_passed_over(data: bytes) -> None:
    world = World()
    world.channel("t", "c")
    world.restart()
    replace(world.files, f"{PATH}/nsqd.dat", data)
    world.kill()
    assert sorted(world.node.homes) == ["t"]


def test_a_stop_whose_flush_of_the_journal_failed_does_not_say_that_it_was_clean() -> None:
    # given a device that does not take what the journal has
    files = FailingFiles(MemoryFiles())
    files.make_directory(PATH)
    world = World(files)
    world.channel("t", "c")
    files.fail(errno.EIO, on="flush", path="*/journal/*")
    # when the node stops
    world.restart()
    # then the next one knows no more than after a kill: it believes only a journal that it has made anew
    assert not world.node.data_path.clean
    assert world.node.scribe.journal.wants_compaction
    assert list(world.home("t").topic.channels) == ["c"]


# --- deferred


def test_a_deferred_message_is_delivered_when_it_is_due_and_not_before() -> None:
    world = World()
    _, _, hand = world.consume("t", "c")
    ticket = Ticket()
    world.node.defer(world.home("t"), [b"later"], 10 * S, ticket)
    assert ticket.answers == [None]
    world.tick(9.9)
    assert hand.offsets == []
    assert world.home("t").log.deferred_count == 1
    world.tick(0.11)
    assert hand.offsets == [0]


def test_a_deferred_message_keeps_its_delay_over_a_kill() -> None:
    world = World()
    world.channel("t", "c")
    world.node.defer(world.home("t"), [b"later"], 10 * S, Ticket())
    world.tick(5)
    world.kill()
    _, _, hand = world.consume("t", "c")
    world.tick(4.9)
    assert hand.offsets == []
    world.tick(0.11)
    assert hand.offsets == [0]


def test_a_deferred_message_is_for_the_channels_that_were_there_when_it_was_published() -> None:
    # given a deferred message, one that is not, and a channel that is made before both are due
    world = World()
    _, _, first = world.consume("t", "first")
    world.node.defer(world.home("t"), [b"later"], 10 * S, Ticket())
    world.tick(1)
    _, _, second = world.consume("t", "second")
    emptied, _, third = world.consume("t", "first")
    world.publish("t", b"now")
    # when it is due, then the new channel is passed over, and goes on behind it
    world.tick(10)
    world.tick(0.01)  # one that was read from the disk meanwhile
    world.publish("t", b"next")
    assert sorted(first.offsets + third.offsets) == [0, 1, 2]
    assert second.offsets == [0, 2]
    # and a channel that is emptied meanwhile does not get it either
    world.node.defer(world.home("t"), [b"later"], 10 * S, Ticket())
    world.tick(1)
    world.node.empty_channel(emptied)
    world.tick(10)
    world.tick(0.01)  # one that was read from the disk meanwhile
    assert 3 not in first.offsets + third.offsets
    assert second.offsets == [0, 2, 3]


def test_a_deferred_message_of_a_topic_without_channels_is_for_the_first_one() -> None:
    # given a message deferred before there is a channel, and a kill
    world = World()
    world.node.topic("t")
    world.tick(1)
    world.node.defer(world.home("t"), [b"later"], 10 * S, Ticket())
    world.tick(1)
    world.kill()
    # when channels come, and then it is due
    _, _, first = world.consume("t", "first")
    world.tick(1)
    _, _, second = world.consume("t", "second")
    world.kill()
    _, _, first = world.consume("t", "first")
    _, _, second = world.consume("t", "second")
    world.tick(10)
    world.tick(0.01)  # one that was read from the disk meanwhile
    # then it is for the first one only
    assert (first.offsets, second.offsets) == ([0], [])


# --- batches that a thread writes

LARGE = b"x" * (1 << 20)


def test_a_large_batch_is_written_on_a_thread_and_others_come_behind_it() -> None:
    # given a large publish, and a small one while a thread writes it
    world = World()
    _, _, hand = world.consume("t", "c")
    large = world.publish("t", b"a", LARGE)
    small = world.publish("t", b"b")
    other = world.publish("u", b"c")
    assert (large.answers, small.answers, other.answers) == ([], [], [None])
    assert hand.offsets == []
    # when the thread is through, then both are answered and delivered, in order
    world.work()
    world.node.turn()
    assert (large.answers, small.answers) == ([None], [None])
    assert hand.offsets == [0, 1, 2]
    world.kill()
    assert world.bodies("t", [0, 1, 2]) == [b"a", LARGE, b"b"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_large_batch_that_cannot_be_written_is_answered_so_and_what_stood_behind_it_too(code: int) -> None:
    memory = MemoryFiles()
    memory.make_directory(PATH)
    files = FailingFiles(memory)
    world = World(files)
    before = world.publish("t", b"a")
    files.fail(code, on="write", path="*/0*.log", written=1000)
    large = world.publish("t", LARGE)
    behind = world.publish("t", b"b")
    world.work()
    assert before.answers == [None]
    assert all(len(each.answers) == 1 and each.answers[0] is not None for each in (large, behind))
    # then the next ones take the offsets that nobody was told of
    after = world.publish("t", b"c")
    assert after.answers == [None]
    assert world.log("t").end == 2
    world.kill()
    assert world.bodies("t", [0, 1]) == [b"a", b"c"]


def test_while_the_device_is_slow_a_thread_writes_whatever_is_published() -> None:
    # given a disk whose last write took long
    world = World()
    world.publish("t", b"a")
    world.files.slow = True
    # when something is published, then the loop does not wait for it
    small = world.publish("t", b"b")
    assert small.answers == []
    world.work()
    assert small.answers == [None]
    # and when a write was fast again, then the next one is made at once
    world.files.slow = False
    assert world.publish("t", b"c").answers == [None]
    assert world.bodies("t", range(3)) == [b"a", b"b", b"c"]


def test_a_topic_may_be_deleted_while_a_thread_writes_to_it() -> None:
    world = World()
    large = world.publish("t", LARGE)
    behind = world.publish("t", b"b")
    world.node.delete_topic(world.home("t"))
    world.work()
    world.node.turn()
    world.work()
    assert len(large.answers) == len(behind.answers) == 1
    assert world.publish("t", b"c").answers == [None]
    world.kill()
    assert world.home("t").log.end == 1


def test_what_is_due_waits_for_a_batch_that_a_thread_writes() -> None:
    world = World()
    _, _, hand = world.consume("t", "c")
    world.node.defer(world.home("t"), [b"later"], S, Ticket())
    world.publish("t", LARGE)
    world.clock.now += 2 * S
    world.clock.wall += 2 * S
    world.node.tick()
    assert hand.offsets == []
    world.work()
    world.node.turn()
    world.tick(0.01)
    world.tick(0.01)
    assert hand.offsets == [0, 1]
    assert world.home("t").log.deferred_count == 0


def test_a_large_batch_waits_for_its_flush_where_every_message_is_flushed() -> None:
    world = World(sync_every=1)
    world.node.topic("t")
    world.work()
    ticket = world.publish("t", LARGE)
    work, done = world.works.popleft()
    work()
    done()
    assert ticket.answers == []
    world.node.turn()
    world.work()
    assert ticket.answers == [None]
    assert world.log("t").flushed == 1


def test_bodies_that_are_put_together_are_one_batch_behind_what_was_put_before() -> None:
    # given a body that was put, and two more of the same turn that are to be put at its end
    world = World()
    world.publish("t", b"0")
    home = world.home("t")
    tickets = [Ticket(), Ticket(), Ticket()]
    home.put_soon(b"2", tickets[0])
    home.put_soon(b"3", tickets[1])
    home.put([b"1"], tickets[2])
    world.node.dirty(home)
    # when the turn ends
    world.node.turn()
    # then all are answered, counted, and there
    assert [ticket.answers for ticket in tickets] == [[None], [None], [None]]
    assert world.bodies("t", range(4)) == [b"0", b"1", b"2", b"3"]
    assert (home.topic.message_count, home.topic.message_bytes) == (4, 4)


def test_bodies_that_are_put_together_are_told_why_the_log_does_not_take_them() -> None:
    # given a log that takes nothing
    world = World()
    world.publish("t", b"0")
    log, home = world.log("t"), world.home("t")
    log.refused = FlushFailed("no room")
    # when two bodies are to be put at the turn's end
    tickets = [Ticket(), Ticket()]
    for ticket in tickets:
        home.put_soon(b"1", ticket)
    world.node.dirty(home)
    world.node.turn()
    # then each is told, and nothing was published
    assert [[type(error) for error in ticket.answers] for ticket in tickets] == [[Refused], [Refused]]
    assert home.topic.message_count == 1
    # and what comes when it is well again is taken
    log.refused = None
    assert world.publish("t", b"1").answers == [None]
