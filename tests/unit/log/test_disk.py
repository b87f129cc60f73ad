"""Open files: few descriptors for many paths, and none lost that somebody still needs."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from penstock.errors import DiskFull, TooManyFiles, log_error
from penstock.log.disk import Damage, Disk, OpenFile
from tests.kit import FailingFiles, MemoryFiles


def path(number: int) -> str:
    return f"/{number:05d}"


def written(disk: Disk, number: int) -> OpenFile:
    """A file with unflushed bytes."""
    file = disk.open(path(number), create=True)
    disk.files.write(file.fd, b"bytes", 0)
    file.unflushed = True
    return file


def clean(disk: Disk, number: int) -> OpenFile:
    """A file without."""
    return disk.open(path(number), create=True)


def flushed(failing: FailingFiles) -> list[str]:
    return [call.paths[0] for call in failing.calls if call.method == "flush"]


def test_a_file_is_opened_once_while_it_is_open() -> None:
    files = FailingFiles(MemoryFiles())
    disk = Disk(files)
    assert disk.open(path(1), create=True) is disk.open(path(1))
    assert len(files.calls) == 1


def test_ten_thousand_paths_need_no_more_descriptors_than_the_limit() -> None:
    # given many files, clean or not, and room for 50
    files = MemoryFiles()
    files.descriptors = 50
    disk = Disk(files, limit=50)
    # when all are opened and written, and then read in another order
    for number in range(10_000):
        written(disk, number)
        assert len(files.opened()) <= 50
    for number in range(0, 10_000, 7):
        file = disk.open(path(number))
        assert disk.files.read(file.fd, 9, 0) == b"bytes"
        assert len(files.opened()) <= 50
    # then nothing stays open behind them
    disk.close_all()
    assert files.opened() == []


def test_the_file_that_is_longest_unused_is_closed_first() -> None:
    # given three open files, of which the oldest was used again in one way or another
    disk = Disk(MemoryFiles(), limit=3)
    one, two, three = (disk.open(path(number), create=True) for number in (1, 2, 3))
    disk.open(path(1))
    # when there is one more
    disk.open(path(4), create=True)
    # then the second had to go
    assert [file.fd >= 0 for file in (one, two, three)] == [True, False, True]
    # and when it comes back after the third was used, it is not the third
    disk.used(three)
    disk.open(path(2))
    assert [file.fd >= 0 for file in (one, three)] == [False, True]


def test_a_closed_file_may_be_told_that_it_was_used() -> None:
    disk = Disk(MemoryFiles(), limit=1)
    first = disk.open(path(1), create=True)
    disk.open(path(2), create=True)
    disk.used(first)
    assert len(disk) == 1


def test_a_clean_file_is_closed_before_one_that_would_have_to_be_flushed() -> None:
    files = FailingFiles(MemoryFiles())
    disk = Disk(files, limit=3)
    dirty, clean = written(disk, 1), disk.open(path(2), create=True)
    written(disk, 3)
    disk.open(path(4), create=True)
    assert (dirty.fd >= 0, clean.fd, flushed(files)) == (True, -1, [])


def test_a_dirty_file_is_flushed_before_it_is_closed() -> None:
    # given only files with unflushed bytes
    files = FailingFiles(MemoryFiles())
    disk = Disk(files, limit=3)
    for number in (1, 2, 3):
        written(disk, number)
    # when one has to go
    disk.open(path(4), create=True)
    # then it was flushed, and then closed
    about_the_first = [call.method for call in files.calls if call.paths == (path(1),)]
    assert about_the_first == ["open", "write", "flush", "close"]


def test_a_file_whose_flush_failed_is_kept_with_its_error_and_another_one_goes() -> None:
    # given dirty files, one of which cannot be flushed, and nobody waits for it
    files = FailingFiles(MemoryFiles())
    disk = Disk(files, limit=2)
    bad, good = written(disk, 1), written(disk, 2)
    files.fail(errno.EIO, on="flush", path=path(1))
    # when one has to go
    disk.open(path(3), create=True)
    # then the bad one stays
    assert (bad.fd >= 0, good.fd) == (True, -1)
    # and whoever flushes it is told, again and again, though Linux would tell it only once
    for _ in range(2):
        with pytest.raises(OSError, match="Input/output error"):
            disk.flush(bad)
    assert flushed(files) == [path(1), path(2)]


def test_a_pinned_file_stays_open_beyond_the_limit() -> None:
    disk = Disk(MemoryFiles(), limit=2)
    pinned = [disk.open(path(number), create=True) for number in (1, 2)]
    for file in pinned:
        file.pins += 1
    disk.open(path(3), create=True)
    disk.open(path(4), create=True)
    assert [file.fd >= 0 for file in pinned] == [True, True]
    assert len(disk) == 3


def test_a_file_that_is_closed_while_a_thread_uses_it_keeps_its_descriptor_until_then() -> None:
    # given a file that two threads use
    files = MemoryFiles()
    disk = Disk(files)
    file = disk.open(path(1), create=True)
    file.pins += 2
    # when it is closed
    disk.close(path(1))
    # then its descriptor is still its own, and the path has a new one
    again = disk.open(path(1))
    assert files.size(file.fd) == 0
    assert again is not file
    # and it goes when the last thread is through, with the next file that is opened or closed
    file.pins -= 1
    disk.close(path(2))
    assert file.fd >= 0
    file.pins -= 1
    disk.close(path(2))
    assert (file.fd, files.opened()) == (-1, [path(1)])


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE], ids=["process", "machine"])
@pytest.mark.parametrize("make", [clean, written])
def test_where_descriptors_run_out_below_the_limit_one_of_ours_is_given_up(
    error: int, make: Callable[[Disk, int], OpenFile]
) -> None:
    # given an open file, clean or dirty, and no descriptor left for another
    files = FailingFiles(MemoryFiles())
    disk = Disk(files)
    old = make(disk, 1)
    full = files.fail(error, on="open", times=1)
    # when another is opened
    new = disk.open(path(2), create=True)
    # then the old one made room
    assert (full.met, old.fd, new.fd >= 0) == (1, -1, True)


def test_where_none_of_ours_can_be_given_up_the_error_is_told_and_passes() -> None:
    # given a file in use and no descriptor left
    files = FailingFiles(MemoryFiles())
    disk = Disk(files)
    disk.open(path(1), create=True).pins += 1
    full = files.fail(errno.EMFILE, on="open", times=None)
    # when another is opened
    with pytest.raises(OSError, match="Too many open files") as caught:
        disk.open(path(2), create=True)
    # then that is what the log makes of it
    assert isinstance(log_error(caught.value, "opening"), TooManyFiles)
    # and it works when there is room again
    files.heal(full)
    assert disk.open(path(2), create=True).fd >= 0


def test_an_error_of_close_is_nobody_s() -> None:
    # given a clean file whose close fails
    files = FailingFiles(MemoryFiles())
    disk = Disk(files, limit=1)
    disk.open(path(1), create=True)
    fault = files.fail(errno.EIO, on="close")
    # when it makes room for another
    disk.open(path(2), create=True)
    # then that one is none the worse for it
    assert (fault.met, len(disk)) == (1, 1)


def test_damage_is_told_to_whoever_wants_to_know_and_kept() -> None:
    told: list[Damage] = []
    disk = Disk(MemoryFiles(), on_damage=told.append)
    damage = Damage("/a", 0, 9, 0, 1, "")
    disk.damaged(damage)
    assert told == disk.damages == [damage]


def test_a_directory_is_made_once_and_an_error_is_typed() -> None:
    files = FailingFiles(MemoryFiles())
    disk = Disk(files)
    assert disk.ensure_directory("/folder")
    assert not disk.ensure_directory("/folder")
    files.fail(errno.ENOSPC, on="make_directory")
    with pytest.raises(DiskFull, match="/other"):
        disk.ensure_directory("/other")
