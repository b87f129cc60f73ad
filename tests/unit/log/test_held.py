"""Stragglers: each is there as it was until it is not wanted, and none keeps more than it must."""

from __future__ import annotations

import errno
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import DiskFull
from penstock.log import held as holding
from penstock.log.disk import Disk
from penstock.log.files import Files
from penstock.log.held import Held
from penstock.log.segment import Block
from penstock.protocol.batch import Record, check, header, records
from tests.kit import FailingFiles, MemoryFiles
from tests.unit.log.builders import BASE, BIRTH, SEED, texts


def straggler(offset: int, body: bytes | None = None) -> Record:
    """As the log had it."""
    body = b"body %d" % offset if body is None else body
    return Record(offset, 1000 + offset, offset % 3, b"%016x" % (BASE + offset), body)


def new_held(files: Files | None = None) -> Held:
    files = files or MemoryFiles()
    files.make_directory("/topic")
    return Held(Disk(files), "/topic", BIRTH)


def again(held: Held, files: Files | None = None) -> Held:
    """As the next process finds it."""
    found = Held(Disk(files or held._disk.files), "/topic", BIRTH)
    found.recover()
    return found


def work(held: Held) -> None:
    """All that there is to do."""
    while todo := held.work(9):
        todo()
        if todo.error:
            raise todo.error


def held_files(held: Held) -> list[str]:
    return sorted(name for name, _ in held._disk.files.list("/topic/held") if name.endswith(".log"))


def read_all(held: Held, offset: int = 0, size: int = 1 << 20) -> list[Record]:
    found: list[Record] = []
    while block := held.read(offset, size):
        assert block.first >= offset
        found += records(block.data)
        offset = block.next
    return found


@pytest.fixture
def _small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holding, "_FILE", 400)
    monkeypatch.setattr(holding, "_BATCH", 60)


@given(st.sets(st.integers(0, 60), min_size=1), st.integers(0, 61), st.sampled_from([1, 20, 1 << 20]))
def test_every_record_is_there_as_it_was_in_batches_of_neighbours(offsets: set[int], start: int, size: int) -> None:
    # given records put in any order, some twice
    held = new_held()
    order = random.Random(len(offsets)).sample(sorted(offsets), len(offsets))
    held.put([straggler(offset) for offset in order[: len(order) // 2 + 1]], 5)
    held.put([straggler(offset) for offset in order[len(order) // 2 :]], 6)
    expected = [straggler(offset) for offset in sorted(offsets) if offset >= start]
    for found in (held, again(held)):
        # when they are read from anywhere
        assert read_all(found, start, size) == expected
        assert len(found) == len(offsets)
        # then a block is a good batch of the topic, of neighbours only
        if block := found.read(start, size):
            assert check(block.data, 0, SEED) == len(block.data)
            assert header(block.data)[:2] == (block.first, block.next - block.first)
            assert texts(list(records(block.data))) == [(r.offset, r.body) for r in expected if r.offset < block.next]
        else:
            assert not expected


def test_nothing_is_there_before_something_is_held() -> None:
    held = new_held()
    assert (held.read(0, 1), held.work(9), len(held)) == (None, None, 0)
    held.put([], 5)
    held.keep([1, 2])
    assert "/topic/held" not in held._disk.files.tree()  # type: ignore[attr-defined]
    assert again(held).read(0, 1) is None


def test_many_large_records_become_many_batches() -> None:
    held = new_held()
    held.put((straggler(offset, bytes(700_000)) for offset in range(20)), 5)
    assert [len(record.body) for record in read_all(again(held))] == [700_000] * 20
    block = held.read(0, 1 << 20)
    assert isinstance(block, Block)
    assert block.next == 2


def test_what_is_held_is_flushed_once_with_its_directory() -> None:
    files = FailingFiles(MemoryFiles())
    held = new_held(files)
    held.put([straggler(1)], 5)
    files.calls.clear()
    work(held)
    assert [call.paths[0] for call in files.calls if call.method.startswith("flush")] == [
        f"/topic/held/{0:020d}.log",
        "/topic/held",
        "/topic",
    ]
    assert held.work(9) is None


def test_what_is_held_while_an_empty_file_is_removed_is_not_removed_with_it() -> None:
    # given the file that a power cut left empty, and a thread that is about to remove it
    held = new_held()
    held._disk.files.make_directory("/topic/held")
    held._disk.files.close(held._disk.files.open(f"/topic/held/{0:020d}.log", create=True))
    held = again(held)
    removal = held.work(9)
    assert removal is not None
    # when something is held before it does
    held.put([straggler(1)], 5)
    removal()
    work(held)
    # then it stays
    assert [record.offset for record in read_all(again(held))] == [1]


# --- what is not wanted any more


@pytest.mark.usefixtures("_small_files")
def test_a_file_goes_when_nothing_in_it_is_wanted_and_the_last_with_the_last() -> None:
    held = new_held()
    held.put([straggler(offset) for offset in range(40)], 5)
    work(held)
    count = len(held_files(held))
    assert count >= 5
    # when half is finished, oldest first
    held.keep(range(20, 40))
    work(held)
    assert len(held_files(held)) <= count // 2 + 1
    for found in (held, again(held)):
        found.keep(range(20, 40))
        assert [record.offset for record in read_all(found)] == list(range(20, 40))
    # and all
    held.keep([])
    work(held)
    assert held_files(held) == []
    assert (len(held), held.read(0, 1)) == (0, None)
    # then it can begin anew
    held.put([straggler(50)], 5)
    work(held)
    assert [record.offset for record in read_all(again(held))] == [50]


@pytest.mark.usefixtures("_small_files")
def test_a_few_that_stay_for_long_do_not_keep_the_files_of_all_others() -> None:
    # given one message that is requeued for days while others come and go
    held = new_held()
    held.put([straggler(0)], 5)
    for round_ in range(1, 100):
        batch = range(round_ * 10, round_ * 10 + 10)
        held.put([straggler(offset) for offset in batch], 5)
        held.keep([0, *batch])
        work(held)
        # then there are never more than a few files
        assert len(held_files(held)) <= 6
    for found in (held, again(held)):
        assert read_all(found)[0] == straggler(0)


@pytest.mark.usefixtures("_small_files")
def test_files_full_of_what_is_wanted_are_not_written_again_and_again() -> None:
    # given many that stay
    files = FailingFiles(MemoryFiles())
    held = new_held(files)
    held.put([straggler(offset) for offset in range(100)], 5)
    work(held)
    # when the work comes round, with and without a change
    files.calls.clear()
    for left in range(10):
        held.keep(range(left, 100))
        work(held)
    # then nothing is written
    assert [call for call in files.calls if call.method in ("write", "flush")] == []


def test_what_is_not_wanted_comes_up_again_after_a_kill_until_it_is_said_again() -> None:
    held = new_held()
    held.put([straggler(offset) for offset in range(5)], 5)
    held.keep([1, 3])
    found = again(held)
    found.keep([1, 3, 77])
    assert [record.offset for record in read_all(found)] == [1, 3]


# --- errors


@pytest.mark.usefixtures("_small_files")
def test_after_a_failed_flush_all_is_copied_to_new_files_and_the_old_are_never_flushed_again() -> None:
    # given records in several files, when the flush of one fails
    files = FailingFiles(MemoryFiles())
    held = new_held(files)
    held.put([straggler(offset) for offset in range(30)], 5)
    old = held_files(held)
    fault = files.fail(errno.EIO, on="flush", path=f"*{old[1]}")
    with pytest.raises(OSError, match="Input/output"):
        work(held)
    # then they are still read
    assert [record.offset for record in read_all(held)] == list(range(30))
    # when it is tried again
    files.calls.clear()
    work(held)
    # then no old file is flushed, all is in new ones, and those are
    flushed = {call.paths[0].rpartition("/")[2] for call in files.calls if call.method == "flush"}
    assert fault.met == 1
    assert flushed.isdisjoint(old)
    assert flushed == set(held_files(held))
    assert [record.offset for record in read_all(held)] == list(range(30))
    assert read_all(again(held)) == [straggler(offset) for offset in range(30)]


def test_where_there_is_no_room_for_the_new_files_it_is_tried_until_there_is() -> None:
    files = FailingFiles(MemoryFiles())
    held = new_held(files)
    held.put([straggler(offset) for offset in range(30)], 5)
    files.fail(errno.EIO, on="flush", path="*.log")
    with pytest.raises(OSError, match="Input/output"):
        work(held)
    full = files.fail(errno.ENOSPC, on="write", times=None)
    for _ in range(3):
        with pytest.raises(DiskFull):
            held.work(9)
    files.heal(full)
    work(held)
    assert read_all(again(held)) == [straggler(offset) for offset in range(30)]


def test_records_for_which_there_is_no_room_are_an_error_and_nothing_is_half_there() -> None:
    files = FailingFiles(MemoryFiles())
    held = new_held(files)
    held.put([straggler(1)], 5)
    for on in ("make_directory", "write"):
        files.fail(errno.ENOSPC, on=on)
    fault = files.fail(errno.ENOSPC, on="write", written=50)
    with pytest.raises(DiskFull):
        held.put([straggler(2)], 5)
    files.heal(fault)
    files.heal()
    for found in (held, again(held)):
        assert [record.offset for record in read_all(found)] == [1]
    held.put([straggler(2)], 5)
    assert [record.offset for record in read_all(again(held))] == [1, 2]


@pytest.mark.usefixtures("_small_files")
def test_a_file_that_cannot_be_deleted_is_deleted_later() -> None:
    files = FailingFiles(MemoryFiles())
    held = new_held(files)
    held.put([straggler(offset) for offset in range(40)], 5)
    work(held)
    files.fail(errno.EPERM, on="unlink")
    held.keep([39])
    with pytest.raises(OSError, match="not permitted"):
        work(held)
    work(held)
    assert len(held_files(held)) <= 3
    assert [record.offset for record in read_all(held)] == [39]


@pytest.mark.usefixtures("_small_files")
def test_damage_loses_only_what_it_hit_and_is_left_where_it_is() -> None:
    # given a record that goes bad in the last file, or in the first
    for number in (-1, 0):
        held = new_held()
        held.put([straggler(offset) for offset in range(40)], 5)
        work(held)
        path = f"/topic/held/{held_files(held)[number]}"
        files = held._disk.files
        fd = files.open(path)
        files.write(fd, b"\xff", 60)
        bad = files.read(fd, 1 << 20, 0)
        # when it is read, and found again
        for found in (held, again(held)):
            left = [record.offset for record in read_all(found)]
            assert 30 <= len(left) < 40
        # then the file is as it was, and new records go to another
        found.put([straggler(50)], 5)
        work(found)
        assert files.read(fd, 1 << 20, 0) == bad
        assert [record.offset for record in read_all(again(found))] == [*left, 50]


def test_its_files_are_closed_with_the_topic() -> None:
    held = new_held()
    held.put([straggler(1)], 5)
    work(held)
    held.keep([])
    held.work(9)
    held.put([straggler(2)], 5)
    held.close()
    assert len(held._disk) == 0
