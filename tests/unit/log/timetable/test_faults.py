"""Calls of the system that fail, each of a life in turn, and for long: nothing is lost, nothing comes twice."""

from __future__ import annotations

import errno
from contextlib import suppress

import pytest

from penstock.errors import DiskFailed, DiskFull, LogError
from penstock.log.timetable.bucket import HOUR
from tests.kit import FailingFiles, MemoryFiles

from .world import SECOND, World


def new_world() -> tuple[FailingFiles, World]:
    beneath = MemoryFiles()
    beneath.make_directory("/t")
    files = FailingFiles(beneath)
    return files, World(files, "/t")


def live(world: World) -> None:
    """Puts near and far, a split, loads, moves, notes, an end: everything that makes calls."""
    for _ in range(3):
        _try_to_put(world, 0, 2)
        _try_to_put(world, SECOND, 3)
        for number in range(8):
            _try_to_put(world, HOUR + number * SECOND, 4)
        world.sync()
        for _ in range(2):
            world.now += SECOND
            world.move()
            world.sync()
        world.now += HOUR // 2
        world.move()


def _try_to_put(world: World, delay: int, count: int) -> None:
    with suppress(LogError):
        world.put(delay, count=count, size=50)


def check(world: World, *, restart: bool) -> None:
    """All that was promised comes once, and nothing is left: not a file, not a descriptor."""
    if restart:
        promised, world = set(world.put_at), world.restart()
    else:
        promised = set(world.put_at)
    for _ in range(2):
        world.sync()  # what has to be copied first
    bodies = world.drain()
    assert len(bodies) == len(set(bodies))
    assert set(bodies) == promised
    for _ in range(3):
        world.sync()
    world.timetable.close()
    world.disk.close_all()
    assert isinstance(world.files, FailingFiles)
    beneath = world.files.beneath
    assert isinstance(beneath, MemoryFiles)
    assert beneath.opened() == []
    assert not beneath.exists("/t/timetable")


def calls_of_a_life() -> int:
    files, world = new_world()
    before = len(files.calls)
    live(world)
    return len(files.calls) - before


FAULTS = {
    "ENOSPC": (errno.ENOSPC, 0),
    "EIO with half a write": (errno.EIO, 30),
    "EMFILE": (errno.EMFILE, 0),
    "a short write": (0, 7),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("restart", [False, True])
def test_any_call_may_fail_once(name: str, restart: bool) -> None:
    error, written = FAULTS[name]
    on = "write" if name == "a short write" else ()
    for number in range(int(restart), calls_of_a_life(), 29):
        # given a life in which one call fails
        files, world = new_world()
        files.fail(error, on=on, skip=number, written=written)
        live(world)
        # when it goes on without faults
        files.heal()
        # then all is there once
        check(world, restart=restart)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("times", [1, 2, 5])
def test_any_call_and_those_after_it_may_fail(name: str, times: int) -> None:
    error, written = FAULTS[name]
    on = "write" if name == "a short write" else ()
    for number in range(calls_of_a_life()):
        for restart in (False, True):
            files, world = new_world()
            files.fail(error, on=on, skip=number, written=written, times=times)
            live(world)
            files.heal()
            check(world, restart=restart)


def test_a_split_that_can_neither_end_nor_be_undone_leaves_nothing_to_come_twice() -> None:
    # given a bucket that is about to be split, and a disk that removes nothing and closes files with an error
    files, world = new_world()
    for number in range(8):
        world.put(HOUR + number * SECOND, count=4, size=50)
    world.sync()
    world.now = world.timetable.next_look or 0
    fault = files.fail(errno.EIO, on=("unlink", "close"), times=None)
    work = world.timetable.prepare(world.now)
    assert work is not None
    work()
    assert work.error is not None
    assert fault.met
    files.heal()
    # then another try takes away what that one made, and all comes once
    check(world, restart=False)


@pytest.mark.parametrize("on", ["write", "flush", "open", "unlink", "read", "flush_directory"])
def test_a_disk_that_fails_for_long_delays_and_loses_nothing(on: str) -> None:
    # given messages, some moved
    files, world = new_world()
    live(world)
    # when all such calls fail for a while
    files.fail(errno.EIO, on=on, times=None)
    live(world)
    files.heal()
    # then all comes once
    check(world, restart=False)


@pytest.mark.parametrize(
    ("error", "raised"), [(errno.ENOSPC, DiskFull), (errno.EDQUOT, DiskFull), (errno.EIO, DiskFailed)]
)
def test_a_put_that_cannot_be_written_is_a_typed_error_and_never_was(error: int, raised: type[LogError]) -> None:
    files, world = new_world()
    before = world.put(HOUR)
    # when there is no room, or half of it
    fault = files.fail(error, on="write", times=None, written=20)
    for _ in range(3):
        with pytest.raises(raised):
            world.put(HOUR, count=3)
    # then others are there, and puts work again when there is room
    files.heal(fault)
    after = world.put(HOUR)
    assert world.timetable.count == 2
    assert world.restart().drain() == before + after


def test_a_put_goes_to_a_new_file_where_half_of_one_cannot_be_cut_off() -> None:
    files, world = new_world()
    before = world.put(HOUR)
    files.fail(errno.EIO, on="write", written=20)
    files.fail(errno.EIO, on="truncate")
    with pytest.raises(DiskFailed):
        world.put(HOUR)
    after = world.put(HOUR)
    assert world.restart().drain() == before + after


def test_what_a_failed_flush_may_have_lost_is_copied_to_a_new_file() -> None:
    # given a bucket whose flush fails
    files, world = new_world()
    world.put(HOUR, count=2)
    fault = files.fail(errno.EIO, on="flush", path="*timetable*")
    assert world.sync().error is not None
    assert (fault.met, world.timetable.dirty) == (1, True)
    # when it is flushed again
    flushed = [call.paths[0] for call in files.calls if call.method == "flush"]
    assert world.sync().error is None
    assert world.sync().error is None
    # then that file is not, a copy is
    assert not world.timetable.dirty
    after = [call.paths[0] for call in files.calls if call.method == "flush"][len(flushed) :]
    assert [path[-7:] for path in after] == [".rescue"]


def test_a_bucket_that_cannot_be_loaded_is_tried_again_after_a_while() -> None:
    files, world = new_world()
    world.put(HOUR, count=2)
    world.now += HOUR
    fault = files.fail(errno.EIO, on="read", path="*timetable*", times=None)
    assert world.move() == 0
    look = world.timetable.next_look
    assert look is not None
    assert world.now < look <= world.now + 2 * SECOND
    # when the device gives it
    files.heal(fault)
    world.now = look
    assert world.move() == 2
