"""The timetable from outside: when messages are due, in which order, what is in memory, what is left on the device."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import TooLarge
from penstock.log.timetable import bucket
from penstock.log.timetable.agenda import LEAD
from penstock.log.timetable.bucket import DAY, HOUR, MINUTE, Limits
from penstock.log.timetable.run import GRAIN
from penstock.protocol.batch import HEADER, RECORD
from tests.kit import MemoryFiles

from .world import SECOND, SMALL, START, World


def new_world(limits: Limits = SMALL) -> World:
    files = MemoryFiles()
    files.make_directory("/t")
    return World(files, "/t", limits=limits)


def names(world: World, suffix: str = "") -> list[str]:
    """The files of the timetable."""
    files = world.files
    if not files.exists(world.timetable.directory):
        return []
    return sorted(name for name, _ in files.list(world.timetable.directory) if name.endswith(suffix))


# --- when


@pytest.mark.parametrize("delay", [0, 1, LEAD - 1, LEAD, SECOND, MINUTE, HOUR, DAY, 400 * DAY])
def test_a_message_is_due_exactly_when_it_is_due(delay: int) -> None:
    world = new_world()
    bodies = world.put(delay, count=3)
    # when it is nearly time
    world.now = START + delay - 1
    assert world.move() == 0
    # and when it is
    world.now = START + delay
    assert world.move() == 3
    assert (world.log.bodies, world.timetable.count, world.timetable.next_look) == (bodies, 0, None)


def test_what_was_to_be_sent_in_the_past_is_due_at_once() -> None:
    world = new_world()
    bodies = world.put(-5 * SECOND)
    assert world.move() == 1
    assert world.log.bodies == bodies


def test_a_message_keeps_the_time_of_its_publish() -> None:
    world = new_world()
    world.put(HOUR)
    [entry] = world.timetable.entries(9)
    assert (entry.timestamp, entry.due) == (START, START + HOUR)


@given(st.lists(st.integers(0, 3 * SECOND) | st.integers(0, 3 * DAY), min_size=1, max_size=30), st.randoms())
def test_messages_come_in_order_of_due_time_and_none_early(delays: list[int], rng: random.Random) -> None:
    # given messages put in any order
    world = new_world()
    for delay in delays:
        world.put(delay, count=rng.choice((1, 2, 9)), size=rng.choice((0, 40)))
    count = world.timetable.count
    # when all time passes, the timetable asked only when it wants to be
    bodies = world.drain()
    # then they come in order, to within the grain
    assert len(bodies) == len(set(bodies)) == count
    latest = 0
    for body in bodies:
        assert world.due[body] > latest - GRAIN
        latest = max(latest, world.due[body])
    assert names(world) == [] or world.sync().error is None
    assert names(world) == []


def test_what_was_read_together_is_in_the_order_of_due_time_and_then_of_the_publish() -> None:
    world = new_world(Limits())
    late = world.put(2 * HOUR + 5, count=2)
    early = world.put(2 * HOUR + 3, count=2)
    more = world.put(2 * HOUR + 5, count=2)
    world.now += 2 * HOUR + 5
    world.move()
    assert world.log.bodies == early + late + more


def test_a_slice_is_as_large_as_was_asked_for_and_one_message_at_least() -> None:
    world = new_world(Limits())
    world.put(0, count=5, size=100)
    assert [len(world.take(size) or ()) for size in (1, 270, 10_000)] == [1, 2, 2]


def test_what_could_not_be_appended_is_due_again_as_it_was() -> None:
    world = new_world(Limits())
    bodies = world.put(0, count=3)
    slice_ = world.take(60)
    assert slice_ is not None
    # when the log does not take it
    world.timetable.give_back(slice_)
    # then it comes again
    assert world.timetable.count == 3
    assert world.move() == 3
    assert world.log.bodies == bodies


def test_a_slice_that_nobody_has_appended_yet_keeps_its_bucket() -> None:
    world = new_world()
    world.put(0)
    slice_ = world.take()
    world.sync()
    assert slice_ is not None
    assert (world.timetable.count, len(names(world, ".log"))) == (1, 1)
    # and once it is appended the bucket goes
    world.append(slice_)
    world.sync()
    assert names(world) == []


def test_more_than_one_batch_can_hold_is_refused_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket, "MAX_BATCH", HEADER + RECORD + 100)
    world = new_world()
    world.timetable.put([bytes(100)], START, START)
    world.move()
    with pytest.raises(TooLarge):
        world.timetable.put([bytes(101)], START + HOUR, START)
    assert (world.timetable.count, world.timetable.next_look) == (0, None)
    world.sync()
    assert names(world) == []


# --- files


def test_without_a_deferred_message_there_is_no_folder() -> None:
    world = new_world()
    assert world.sync().error is None
    world.timetable.close()
    assert not world.files.exists("/t/timetable")


@pytest.mark.parametrize(
    ("delay", "width"),
    [(0, MINUTE), (HOUR - 1, MINUTE), (HOUR, HOUR), (2 * DAY - 1, HOUR), (2 * DAY, DAY), (90 * DAY, DAY)],
)
def test_the_farther_ahead_the_wider_the_bucket(delay: int, width: int) -> None:
    world = new_world()
    world.put(delay)
    [name] = names(world)
    start = (START + delay) // width * width
    assert name.startswith(f"{start:020d}-{width}-")


def test_messages_of_one_stretch_share_a_file_and_a_recovered_file_is_not_written_on() -> None:
    world = new_world()
    for _ in range(3):
        world.put(HOUR)
    assert len(names(world)) == 1
    world = world.restart()
    world.put(HOUR)
    assert len(names(world)) == 2


def test_a_bucket_is_dropped_when_all_of_it_was_moved_and_the_folder_at_the_stop() -> None:
    world = new_world()
    world.put(SECOND, count=2)
    world.put(2 * SECOND)
    world.sync()
    # when some of it is moved, it is noted
    world.now += SECOND
    world.move()
    world.sync()
    assert (len(names(world, ".log")), len(names(world, ".moved"))) == (1, 1)
    # when the rest is
    world.now += SECOND
    world.move()
    world.sync()
    assert names(world) == []
    world.timetable.close()
    assert not world.files.exists("/t/timetable")


def test_a_clean_stop_and_start_keep_all_and_leave_nothing_open() -> None:
    files = MemoryFiles()
    files.make_directory("/t")
    world = World(files, "/t", limits=Limits())
    bodies = world.put(HOUR, count=3) + world.put(DAY * 3)
    world.sync()
    world.timetable.close()
    assert files.opened() == []
    again = world.restart()
    assert again.timetable.count == 4
    assert again.drain() == bodies


def test_what_is_flushed_once_is_not_dirty_until_more_is_put() -> None:
    world = new_world()
    assert not world.timetable.dirty
    world.put(HOUR)
    assert world.timetable.dirty
    world.sync()
    assert not world.timetable.dirty
    world.put(HOUR)
    assert world.timetable.dirty


# --- memory


def in_memory(world: World) -> int:
    return sum(bucket.memory.size for bucket in world.timetable._near if bucket.memory)


def test_far_buckets_are_not_in_memory_and_are_loaded_soon_before_they_are_due() -> None:
    world = new_world(Limits())
    world.put(HOUR, count=4)
    assert (world.prepare(), in_memory(world)) == (0, 0)
    look = world.timetable.next_look
    assert look is not None
    assert START < look <= START + HOUR - LEAD
    # when it is time to look
    world.now = look
    assert world.prepare() == 1
    assert in_memory(world) > 0
    assert world.timetable.next_look == START + HOUR


@pytest.mark.parametrize("spread", [0, 1, SECOND, MINUTE, HOUR, DAY])
def test_however_much_is_due_memory_stays_bounded(spread: int) -> None:
    # given many times what may be in memory, due within a stretch
    world = new_world()
    rng = random.Random(spread)
    for _ in range(150):
        world.put(2 * HOUR + rng.randint(0, spread), count=2, size=100)
    size = world.timetable.bytes
    # when it becomes due
    most = 0
    while (look := world.timetable.next_look) is not None:
        world.now = max(world.now, look)
        while work := world.timetable.prepare(world.now):
            work()
            most = max(most, in_memory(world))
        if slice_ := world.take():
            world.append(slice_)
        world.now += 1
    # then only a part was in memory at any time, and all of it came
    assert len(set(world.log.bodies)) == len(world.log.bodies) == 300
    assert size > 40_000
    assert most <= SMALL.held + 2 * SMALL.load


def test_a_burst_due_at_once_does_not_grow_one_bucket_without_end() -> None:
    world = new_world()
    bodies = [body for _ in range(60) for body in world.put(0, count=1, size=50)]
    assert len(names(world)) > 2
    assert world.move() == 60
    assert sorted(world.log.bodies) == sorted(bodies)


# --- looking


@given(st.lists(st.tuples(st.integers(0, 3 * HOUR), st.integers(1, 9)), min_size=1, max_size=12), st.integers(1, 40))
def test_listing_says_what_waits_loads_nothing_and_changes_nothing(puts: list[tuple[int, int]], limit: int) -> None:
    world = new_world()
    waits = {body for delay, count in puts for body in world.put(delay, count=count)}
    world.now += HOUR
    world.move()
    waits -= set(world.log.bodies)
    for found in (world, world.restart()):
        before = in_memory(found)
        listed = found.timetable.entries(limit)
        assert len(listed) == min(limit, len(waits)) == len({entry.body for entry in listed})
        assert {entry.body for entry in listed} <= waits
        assert all(entry.due == world.due[entry.body] for entry in listed)
        assert (found.timetable.count, in_memory(found)) == (len(waits), before)


def test_scanning_after_a_start_gives_all_that_waits() -> None:
    world = new_world()
    for delay in (SECOND, HOUR, 2 * HOUR, DAY):
        world.put(delay, count=5)
    world.now += SECOND
    world.move()
    found = world.restart().timetable.scan()
    assert sum(len(places) for _, places in found) == 15
