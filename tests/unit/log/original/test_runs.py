"""More entries than memory should hold come out sorted, and nothing is left behind."""

from __future__ import annotations

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import DiskFailed, DiskFull
from penstock.log.original.runs import Runs
from tests.kit import FailingFiles, MemoryFiles


def there_and_back(runs: Runs) -> None:
    runs.add([b"bb", b"aa"])
    sorted_by(runs)


def sorted_by(runs: Runs) -> list[bytes]:
    return [block[at : at + 2] for block in runs.blocks() for at in range(0, len(block), 2)]


@given(st.lists(st.lists(st.binary(min_size=2, max_size=2), max_size=20), max_size=20), st.integers(1, 30))
def test_entries_come_out_sorted_however_few_are_held(parts: list[list[bytes]], held: int) -> None:
    # given entries in any order, and equal ones
    files = MemoryFiles()
    runs = Runs(files, "/runs", 2, held)
    for part in parts:
        runs.add(part)
    # when they are read
    found = sorted_by(runs)
    runs.close()
    # then they are in order, and the file is gone
    assert found == sorted(entry for part in parts for entry in part)
    assert files.tree() == {}
    assert files.opened() == []


def test_a_run_longer_than_a_block_is_read_in_parts() -> None:
    # given one run of rising entries and one of falling ones, longer than the smallest block
    entries = [n.to_bytes(2) for n in range(2000)]
    runs = Runs(MemoryFiles(), "/runs", 2, held=500)
    for start in range(0, 2000, 100):
        runs.add(entries[start : start + 100])
    for start in range(1900, -100, -100):
        runs.add(entries[start : start + 100])
    # when they are read
    blocks = list(runs.blocks())
    # then they are in order, in more than one block
    assert b"".join(blocks) == b"".join(entry + entry for entry in entries)
    assert len(blocks) > 5


def test_a_run_that_sorts_behind_the_last_one_is_one_with_it() -> None:
    # given rising entries
    runs = Runs(MemoryFiles(), "/runs", 2, held=100)
    for start in range(0, 1000, 100):
        runs.add([n.to_bytes(2) for n in range(start, start + 100)])
    # when they are read
    blocks = list(runs.blocks())
    # then each read brings as much as memory may hold
    assert [len(block) for block in blocks] == [200] * 10


def test_few_entries_need_no_file() -> None:
    # given fewer entries than are held, on a disk that takes none
    files = FailingFiles(MemoryFiles())
    files.fail(errno.ENOSPC, on="open", times=None)
    runs = Runs(files, "/runs", 2, held=3)
    runs.add([b"bb", b"aa"])
    # then they are sorted all the same
    assert sorted_by(runs) == [b"aa", b"bb"]


@pytest.mark.parametrize(
    ("on", "error", "raised"),
    [("write", errno.ENOSPC, DiskFull), ("open", errno.EACCES, DiskFailed), ("read", errno.EIO, DiskFailed)],
)
def test_an_error_of_the_disk_is_a_typed_one_and_the_file_goes(on: str, error: int, raised: type[Exception]) -> None:
    # given a disk that fails
    files = FailingFiles(MemoryFiles())
    files.fail(error, on=on)
    runs = Runs(files, "/runs", 2, held=2)
    # when entries have to go there and come back
    with pytest.raises(raised, match="/runs"):
        there_and_back(runs)
    # then nothing is left
    runs.close()
    assert not files.exists("/runs")
