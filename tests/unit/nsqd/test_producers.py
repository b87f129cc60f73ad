"""Producers of a node: what is appended, what is a repeat, what is refused; and what of that is remembered."""

from __future__ import annotations

import errno
import random

import pytest

from penstock.errors import LogError, OtherBatch, Refused
from penstock.log.keyed import Key, Keyed
from penstock.log.state import NodeState
from penstock.nsqd.producers import bodies_of
from penstock.protocol.batch import KEYED, header, records
from penstock.protocol.commands import Publish
from tests.kit import FailingFiles, MemoryFiles, PowerCuts
from tests.unit.nsqd.world import PATH, S, Ticket, World

DAY = 24 * 3600
MIB = 1 << 20


class OnceTicket(Ticket):
    def __init__(self) -> None:
        super().__init__()
        self.last: int | None = None

    def repeats(self, last: int) -> None:
        self.last = last


def ask(
    world: World, sequence: int, *bodies: bytes, digest: bytes = b"", delay: int = 0, topic: str = "t"
) -> OnceTicket:
    """A publish under a key, as a handler does it; the turn is not over."""
    home, ticket = world.node.topic(topic), OnceTicket()
    key = Key(b"spark", sequence, digest or b"of %d" % sequence)
    world.node.producers.publish(home, key, bodies or [b"%d" % sequence], delay, ticket)
    world.node.dirty(home)
    return ticket


def once(
    world: World, sequence: int, *bodies: bytes, digest: bytes = b"", delay: int = 0, topic: str = "t"
) -> OnceTicket:
    ticket = ask(world, sequence, *bodies, digest=digest, delay=delay, topic=topic)
    world.node.turn()
    return ticket


def outcome(ticket: OnceTicket) -> str:
    assert len(ticket.answers) == 1
    (error,) = ticket.answers
    if error is not None:
        return type(error).__name__
    return "appended" if ticket.last is None else f"repeats {ticket.last}"


def content(world: World, topic: str = "t") -> list[bytes]:
    log = world.home(topic).log
    found, offset = [], 0
    while block := log.read(offset):
        found += [record.body for record in records(block.data)]
        offset = block.next
    return found


def last(world: World, topic: str = "t") -> int:
    return world.node.producers.find(b"spark")[topic].sequence


def journalled(world: World) -> NodeState:
    state = NodeState()
    state.apply_all(world.node.scribe.journal.replay())
    return state


def settle(world: World) -> None:
    for _ in range(4):
        world.tick()
    assert not world.node.producers._settling
    assert not world.log("t").keyed


# --- what is asked, and what is done


@pytest.mark.parametrize(
    ("sequence", "digest", "expected"),
    [
        pytest.param(8, b"any", "appended", id="above"),
        pytest.param(7, b"d", "repeats 7", id="same"),
        pytest.param(7, b"e", "OtherBatch", id="other"),
        pytest.param(6, b"any", "repeats 7", id="below"),
        pytest.param(0, b"any", "repeats 7", id="zero"),
    ],
)
def test_a_sequence_says_whether_it_is_a_repeat(sequence: int, digest: bytes, expected: str) -> None:
    # given a producer that published 7, when it publishes another, or that once more
    world = World()
    once(world, 7, b"seven", digest=b"d")
    ticket = once(world, sequence, b"more", digest=digest)
    # then nothing but a higher one is appended
    assert outcome(ticket) == expected
    assert content(world) == [b"seven", b"more"][: 2 if expected == "appended" else 1]


def test_one_batch_has_the_key_and_nothing_else_in_it() -> None:
    # given a turn of plain publishes and keyed ones
    world = World()
    home, plain = world.node.topic("t"), Ticket()
    first, second = ask(world, 1, b"a", b"b"), ask(world, 2, b"c")
    home.put([b"plain"], plain)
    world.node.turn()
    # then each keyed one is a batch of its own, in the order in which they came
    block = world.log("t").read(0)
    assert block is not None
    found, at = [], 0
    while at < len(block.data):
        head = header(block.data, at)
        found.append((head.flags, [record.body for record in records(block.data, at, head.end)]))
        at = head.end
    assert found == [(0, [b"plain"]), (KEYED, [b"a", b"b"]), (KEYED, [b"c"])]
    assert (plain.answers, first.answers, second.answers) == ([None], [None], [None])
    assert (home.topic.message_count, home.topic.message_bytes) == (4, 8)


def test_a_repeat_in_the_same_turn_is_one() -> None:
    world = World()
    tickets = [ask(world, 1), ask(world, 1), ask(world, 2), ask(world, 1)]
    world.node.turn()
    assert [outcome(ticket) for ticket in tickets] == ["appended", "repeats 1", "appended", "repeats 2"]
    assert content(world) == [b"1", b"2"]


def test_behind_a_batch_that_a_thread_writes_order_is_kept() -> None:
    # given a large batch on a thread
    world = World()
    tickets = [ask(world, 1, bytes(2 * MIB))]
    world.node.turn()
    assert tickets[0].answers == []
    # when more comes meanwhile, also the same once more
    tickets += [ask(world, 2), ask(world, 1, bytes(2 * MIB))]
    world.node.turn()
    assert [ticket.answers for ticket in tickets] == [[], [], []]
    world.work()
    world.node.turn()
    # then all are answered, and it is there once
    assert [outcome(ticket) for ticket in tickets] == ["appended", "appended", "repeats 2"]
    assert [len(body) for body in content(world)] == [2 * MIB, 1]


def test_producers_of_topics_are_apart() -> None:
    world = World()
    assert outcome(once(world, 5)) == "appended"
    assert outcome(once(world, 3, topic="u")) == "appended"
    found = world.node.producers.find(b"spark")
    assert {topic: producer.sequence for topic, producer in found.items()} == {"t": 5, "u": 3}


def test_what_is_deferred_is_published_once_too() -> None:
    # given messages that are deferred under a key, twice
    world = World()
    assert outcome(once(world, 1, b"a", b"b", delay=S)) == "appended"
    assert outcome(once(world, 1, b"a", b"b", delay=S)) == "repeats 1"
    assert (content(world), world.log("t").deferred_count) == ([], 2)
    # when they are due, then each is there once, and still a repeat
    world.tick(1)
    world.tick(1)
    assert content(world) == [b"a", b"b"]
    assert outcome(once(world, 1, b"a", b"b", delay=S)) == "repeats 1"
    assert world.log("t").deferred_count == 0


@pytest.mark.parametrize("delay", [0, S])
def test_with_a_flush_each_a_repeat_waits_for_it_as_well(delay: int) -> None:
    world = World(sync_every=1)
    tickets = [once(world, 1, delay=delay), once(world, 1, delay=delay)]
    assert [ticket.answers for ticket in tickets] == [[], []]
    world.work()
    assert [outcome(ticket) for ticket in tickets] == ["appended", "repeats 1"]


def test_bodies_in_a_frame_are_found() -> None:
    data = bytearray(b"MPUB\0\0\0\1a\0\0\0\0\0\0\0\2bc")
    assert bodies_of(Publish("t", data, 4, len(data), 3, 0)) == [b"a", b"", b"bc"]


# --- lives


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("end", [World.kill, World.restart])
@pytest.mark.parametrize("delay", [0, 10 * S, 1000 * S])
def test_a_repeat_is_one_in_the_next_life(end: object, settled: bool, delay: int) -> None:
    # given batches of a producer, told to the journal or not yet
    world = World()
    for sequence in (3, 4):
        once(world, sequence, delay=delay)
    if settled:
        settle(world)
        assert [entry.sequence for entry in journalled(world).producers.values()] == [4]
    # when the process ends, in whatever way, and both come again
    end(world)  # type: ignore[operator]
    tickets = [once(world, sequence, delay=delay) for sequence in (3, 4)]
    # then they are known
    assert [outcome(ticket) for ticket in tickets] == ["repeats 4", "repeats 4"]
    assert outcome(once(world, 4, digest=b"another", delay=delay)) == "OtherBatch"
    assert outcome(once(world, 5, delay=delay)) == "appended"
    assert world.log("t").end + world.log("t").deferred_count == 3


def test_the_journal_is_told_once_what_is_on_the_device() -> None:
    # given a hundred batches, not flushed
    world = World()
    before = world.node.scribe.journal.end
    once(world, 0)
    after_topic = world.node.scribe.journal.end
    for sequence in range(1, 100):
        once(world, sequence)
    assert after_topic - before == 2
    assert world.node.scribe.journal.end == after_topic
    # when they are, then one entry says the last
    settle(world)
    assert world.node.scribe.journal.end == after_topic + 1
    assert [entry.sequence for entry in journalled(world).producers.values()] == [99]


def test_the_journal_is_not_told_of_an_older_batch_that_a_start_finds_again() -> None:
    # given two batches that the journal has
    world = World()
    once(world, 1)
    once(world, 2)
    settle(world)
    # when a start finds the first one once more, and one that nobody understands
    for key in (Key(b"spark", 1, b"of 1").pack(), b"?"):
        world.log("t").keyed.append(Keyed(0, 1, world.clock.wall, key))
    settle(world)
    # then it is the later one that is known
    assert [entry.sequence for entry in journalled(world).producers.values()] == [2]
    assert any("is no producer's key" in line for line in world.lines)


def test_producers_and_marks_are_in_what_a_compaction_says() -> None:
    # given settled producers, when the journal is compacted, and one of them publishes meanwhile
    world = World()
    once(world, 1)
    once(world, 1, topic="u")
    world.node.producers.mark(Key(b"query", 9, b"d"))
    settle(world)
    world.node.scribe.journal._whole = False
    for sequence in range(2, 8):
        once(world, sequence)
        world.tick()
    assert not world.node.scribe.journal.compacting
    settle(world)
    # then the journal says how all of them are
    said = {(entry.topic, entry.key): entry.sequence for entry in journalled(world).producers.values()}
    topics = {home.number: name for name, home in world.node.homes.items()}
    assert {(topics.get(topic), key): sequence for (topic, key), sequence in said.items()} == {
        ("t", b"spark"): 7,
        ("u", b"spark"): 1,
        (None, b"query"): 9,
    }
    world.kill()
    assert world.node.producers.marks[b"query"].sequence == 9


def test_a_producer_goes_with_its_topic() -> None:
    world = World()
    once(world, 5)
    settle(world)
    world.node.delete_topic(world.home("t"))
    assert world.node.producers.find(b"spark") == {}
    assert outcome(once(world, 5)) == "appended"
    world.kill()
    assert last(world) == 5


def test_who_waits_behind_a_thread_when_the_topic_is_deleted_is_told() -> None:
    world = World()
    ask(world, 1, bytes(2 * MIB))
    world.node.turn()
    waiting = ask(world, 2)
    world.node.delete_topic(world.home("t"))
    assert outcome(waiting) == Refused.__name__


def test_an_ephemeral_topic_has_producers_that_are_not_written_down() -> None:
    world = World()
    before = world.node.scribe.journal.end
    assert outcome(once(world, 1, topic="t#ephemeral")) == "appended"
    assert outcome(once(world, 1, topic="t#ephemeral")) == "repeats 1"
    world.tick()
    assert world.node.scribe.journal.end == before
    assert content(world, "t#ephemeral") == [b"1"]


# --- time


def test_a_producer_that_publishes_nothing_for_long_is_forgotten() -> None:
    # given one that goes on publishing, one that does not, and a mark
    world = World()
    once(world, 1, topic="left")
    world.node.producers.mark(Key(b"query", 9, b"d"))
    for sequence in range(31):
        once(world, sequence, topic="t")
        world.tick(DAY)
    # then the one is known, the other is not
    assert list(world.node.producers.find(b"spark")) == ["t"]
    assert not world.node.producers.marks
    assert outcome(once(world, 1, topic="left")) == "appended"
    world.kill()
    assert set(world.node.producers.find(b"spark")) == {"t", "left"}
    assert not world.node.producers.marks


def test_without_a_timeout_no_producer_is_forgotten() -> None:
    world = World(producer_timeout=0)
    once(world, 1)
    world.tick(1000 * DAY)
    assert last(world) == 1


# --- a disk that fails


def failing_world(**options: int) -> tuple[World, FailingFiles]:
    memory = MemoryFiles()
    memory.make_directory(PATH)
    files = FailingFiles(memory)
    return World(files, **options), files


@pytest.mark.parametrize("delay", [0, 1000 * S])
def test_what_has_no_room_was_not_published(delay: int) -> None:
    world, files = failing_world()
    once(world, 1, delay=delay)
    files.fail(errno.ENOSPC, on="write", path="*/topics/*", times=None)
    refused = once(world, 2, delay=delay)
    assert isinstance(refused.answers[0], LogError)
    assert not isinstance(refused.answers[0], OtherBatch)
    files.heal()
    assert outcome(once(world, 2, delay=delay)) == "appended"
    assert world.log("t").end + world.log("t").deferred_count == 2


def test_what_the_journal_does_not_take_it_is_told_again() -> None:
    world, files = failing_world()
    once(world, 1)
    files.fail(errno.ENOSPC, on="write", path="*/journal/*", times=None)
    for _ in range(4):
        world.tick()
    assert journalled(world).producers == {}
    with pytest.raises(LogError):
        world.node.producers.mark(Key(b"query", 9, b"d"))
    assert not world.node.producers.marks
    files.heal()
    settle(world)
    assert [entry.sequence for entry in journalled(world).producers.values()] == [1]


def test_after_a_failed_flush_a_repeat_is_one() -> None:
    # given a batch whose flush fails: whether it is there is unknown
    world, files = failing_world(sync_every=1)
    world.work()
    ticket = once(world, 1)
    fault = files.fail(errno.EIO, on="flush", path="*/topics/*.log")
    while not fault.met:  # the journal's comes first
        work, done = world.works.popleft()
        work()
        done()
    assert outcome(ticket) == "FlushFailed"
    # when the log has healed, then it was there
    world.work()
    again = once(world, 1)
    world.work()
    assert outcome(again) == "repeats 1"
    assert content(world) == [b"1"]


def test_after_a_power_cut_what_was_answered_is_a_repeat_and_what_is_one_is_there() -> None:
    # given a producer of a node that flushes before it answers
    files = PowerCuts()
    files.make_directory(PATH)
    files.flush_all(PATH)
    world, begun = World(files, sync_every=1), files.step
    answered: list[tuple[int, int]] = []  # (step, sequence)
    for sequence in range(1, 12):
        ticket = once(world, sequence, delay=1000 * S if sequence % 3 == 0 else 0)
        world.work()
        assert outcome(ticket) == "appended"
        answered.append((files.step, sequence))
        if sequence % 2:
            world.tick()
    # when the power goes at any moment, and all is published again
    for moment in [moment for moment in files.moments() if moment.step >= begun]:
        sure = max([sequence for step, sequence in answered if step <= moment.step], default=0)
        for state in moment.cuts(random.Random(moment.step), 2):
            again = World(state, "another", sync_every=1)
            again.work()
            known = last(again) if "t" in again.node.producers.find(b"spark") else 0
            assert known >= sure
            for sequence in range(1, 12):
                once(again, sequence, delay=1000 * S if sequence % 3 == 0 else 0)
                again.work()
            # then each is there once
            waiting = [entry.body for entry in again.log("t").timetable.entries(100)]
            assert sorted(content(again) + waiting, key=int) == [b"%d" % sequence for sequence in range(1, 12)]
