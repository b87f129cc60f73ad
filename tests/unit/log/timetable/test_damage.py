"""Files that are cut or damaged: what is whole comes, the rest is set aside and told of, and no error is another's."""

from __future__ import annotations

import random

import pytest

from penstock.log.timetable.bucket import HOUR, Limits
from tests.kit import MemoryFiles

from .world import SECOND, SMALL, World

FOLDER = "/t/timetable"


def deferred(limits: Limits = SMALL, *, batches: int = 4) -> tuple[MemoryFiles, World, list[bytes]]:
    """A flushed bucket of some batches, and another one; the path of the first one's file."""
    files = MemoryFiles()
    files.make_directory("/t")
    world = World(files, "/t", limits=limits)
    for number in range(batches):
        world.put(HOUR + number * SECOND, count=2, size=10)
    world.put(3 * HOUR)
    world.sync()
    return files, world, list(world.put_at)


def first_log(files: MemoryFiles) -> str:
    return min(path for path in files.tree() if path.endswith(".log"))


def change(files: MemoryFiles, path: str, data: bytes) -> None:
    fd = files.open(path, create=True, truncate=True)
    files.write(fd, data, 0)
    files.close(fd)


def test_a_bucket_cut_anywhere_gives_its_whole_batches() -> None:
    files, _, bodies = deferred(Limits())
    path = first_log(files)
    data = files.tree()[path]
    assert data is not None
    size = len(data) // 4
    for length in range(len(data)):
        # given the file as a kill could have left it
        left = files.copy()
        change(left, path, data[:length])
        # when another process finds it
        again = World(left, "/t", limits=Limits())
        # then what is whole comes, the other bucket too, and nothing was damaged
        whole = length // size * 2
        assert again.timetable.count == whole + 1
        assert again.drain() == bodies[:whole] + bodies[-1:]
        assert again.disk.damages == []


@pytest.mark.parametrize("limits", [SMALL, Limits()], ids=["split", "loaded"])
def test_a_bit_flipped_anywhere_takes_its_batch_and_no_other(limits: Limits) -> None:
    files, _, bodies = deferred(limits)
    path = first_log(files)
    data = files.tree()[path]
    assert data is not None
    size = len(data) // 4
    rng = random.Random(1)
    for bit in range(0, 8 * len(data), 19):
        # given a bucket with one bit wrong
        left = files.copy()
        at = bit // 8
        change(left, path, data[:at] + bytes([data[at] ^ 1 << bit % 8]) + data[at + 1 :])
        # when another process finds it
        again = World(left, "/t", limits=limits)
        again.timetable.entries(rng.randrange(1, 20))
        found = again.drain()
        # then the others come, in order, and the damage is told of and set aside
        hit = at // size * 2
        assert found == bodies[:hit] + bodies[hit + 2 :]
        assert again.timetable.count == 0
        [damage] = again.disk.damages
        assert (damage.path, damage.position, damage.size) == (path, at // size * size, size)
        assert left.tree()[damage.copy] == left_of(left, damage.copy)
        # and it is told of once
        again.sync()
        assert World(left, "/t", limits=limits).disk.damages == []


def left_of(files: MemoryFiles, copy: str) -> bytes:
    """What a copy of damage is: not empty."""
    data = files.tree()[copy]
    assert data
    return data


@pytest.mark.parametrize("junk", [b"", b"\x00", b"junk" * 30, bytes(200)])
def test_a_file_of_junk_keeps_nothing_else_from_coming(junk: bytes) -> None:
    files, _, bodies = deferred()
    path = first_log(files)
    change(files, path, junk)
    for name in ("nonsense", "0_0.log", "x" * 200, f"{1:020d}-9-{7:020d}-{0:020d}_{5:020d}.log"):
        change(files, f"{FOLDER}/{name}", junk)
    again = World(files, "/t")
    assert again.drain() == bodies[-1:]


def test_a_damaged_bucket_stays_until_its_damage_is_set_aside() -> None:
    # given a damaged bucket, and no room for a copy
    files, _, bodies = deferred(Limits())
    path = first_log(files)
    data = files.tree()[path]
    assert data is not None
    change(files, path, data[:50] + b"\xff" + data[51:])
    files.capacity = sum(len(data) for data in files.tree().values() if data)
    again = World(files, "/t", limits=Limits())
    again.now += HOUR
    again.drain()
    again.sync()
    # then it is told of, and its file is there
    assert [damage.copy for damage in again.disk.damages] == [""]
    assert files.exists(path)
    # and when there is room at the next start, it goes
    files.capacity = None
    later = again.restart()
    assert [damage.copy != "" for damage in later.disk.damages] == [True]
    assert later.drain() == again.log.bodies
    later.sync()
    assert not files.exists(path)
    assert set(later.log.bodies) == set(bodies[2:])


@pytest.mark.parametrize("cut", [True, False])
def test_damaged_notes_move_a_message_twice_at_most_and_lose_none(cut: bool) -> None:
    # given a bucket of which some is moved and noted, and the log is flushed behind it
    files, world, bodies = deferred(Limits())
    world.now += HOUR
    world.move()
    world.sync()
    [path] = [path for path in files.tree() if path.endswith(".moved")]
    data = files.tree()[path]
    assert data is not None
    for at in range(len(data)):
        left = files.copy()
        change(left, path, data[:at] + (b"" if cut else bytes([data[at] ^ 16]) + data[at + 1 :]))
        again = World(left, "/t", log=world.log.after(world.step, None), limits=Limits())
        again.now = world.now
        assert set(again.drain()) == set(bodies)
