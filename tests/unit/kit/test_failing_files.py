"""Faults come when and how a test says, and only then."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from penstock.log.files import Files, read_whole, replace
from tests.kit import Call, FailingFiles, MemoryFiles, PowerCuts


def failing_with(path: str, data: bytes) -> tuple[FailingFiles, int]:
    files = FailingFiles(MemoryFiles())
    fd = files.open(path, create=True)
    files.write(fd, data, 0)
    return files, fd


def test_each_call_of_a_history_can_fail_in_turn() -> None:
    # given a file that is replaced by way of these calls
    def history(files: Files) -> None:
        replace(files, "/a", b"new")

    whole = FailingFiles(MemoryFiles())
    history(whole)
    methods = [call.method for call in whole.calls]
    assert methods == ["open", "write", "flush", "close", "rename", "flush_directory"]
    for n in range(len(whole.calls)):
        # when the nth fails
        beneath = MemoryFiles()
        replace(beneath, "/a", b"old")
        failing = FailingFiles(beneath)
        fault = failing.fail(errno.EIO, skip=n)
        with pytest.raises(OSError, match="Input/output error"):
            history(failing)
        # then it and only it did, the file is whole, and nothing is left open
        assert fault.met == 1
        assert beneath.tree()["/a"] == (b"new" if n == 5 else b"old")
        assert beneath.opened() == []
        # and the next time works
        history(failing)
        assert beneath.tree() == {"/a": b"new"}


@pytest.mark.parametrize(
    ("on", "path", "fails"),
    [
        pytest.param("write", "*.log", True, id="method and pattern"),
        pytest.param(("open", "write"), "/d/a.*", True, id="several methods"),
        pytest.param((), lambda path: path.endswith("a.log"), True, id="any method and a predicate"),
        pytest.param("read", "*", False, id="another method"),
        pytest.param("write", "*.index", False, id="another path"),
    ],
)
def test_a_fault_is_met_by_what_it_names(
    on: str | tuple[str, ...], path: str | Callable[[str], bool], fails: bool
) -> None:
    # given an open file and a fault
    files = FailingFiles(MemoryFiles())
    files.make_directory("/d")
    fd = files.open("/d/a.log", create=True)
    fault = files.fail(errno.EDQUOT, on=on, path=path, times=None)
    # when it is written twice
    for _ in range(2):
        if fails:
            with pytest.raises(OSError, match="Disk quota exceeded"):
                files.write(fd, b"x", 0)
        else:
            assert files.write(fd, b"x", 0) == 1
    # then it was met each time or never, and is gone when healed
    assert fault.met == (2 if fails else 0)
    files.heal(fault)
    assert files.write(fd, b"x", 0) == 1


def test_a_write_can_fail_with_a_part_of_it_done() -> None:
    files, fd = failing_with("/a", b"")
    files.fail(errno.ENOSPC, on="write", written=3)
    with pytest.raises(OSError, match="No space left"):
        files.write(fd, b"12345", 0)
    assert read_whole(files, "/a") == b"123"


def test_a_short_write_says_what_it_did() -> None:
    files, fd = failing_with("/a", b"")
    files.shorten(2, skip=1, times=1)
    assert [files.write(fd, b"12345", at) for at in (0, 5, 10)] == [5, 2, 5]


def test_a_file_is_known_by_the_name_it_has_now() -> None:
    # given a file in a directory that was renamed since it was opened
    files = FailingFiles(MemoryFiles())
    files.make_directory("/d")
    fd = files.open("/d/a", create=True)
    files.rename("/d", "/e")
    # then a fault for the new name is met
    files.fail(errno.EIO, on="write", path="/e/a")
    with pytest.raises(OSError, match="Input/output error"):
        files.write(fd, b"x", 0)
    assert files.calls[-2:] == [Call("rename", ("/d", "/e")), Call("write", ("/e/a",))]


def test_a_rename_is_met_by_either_of_its_names() -> None:
    files, _ = failing_with("/a.partial", b"x")
    files.fail(errno.EIO, on="rename", path="/a")
    with pytest.raises(OSError, match="Input/output error"):
        files.rename("/a.partial", "/a")
    assert files.exists("/a.partial")


def test_a_failed_close_has_closed() -> None:
    files, fd = failing_with("/a", b"x")
    files.fail(errno.EIO, on="close")
    with pytest.raises(OSError, match="Input/output error"):
        files.close(fd)
    with pytest.raises(OSError, match="Bad file descriptor"):
        files.close(fd)


def test_a_failed_look_for_a_file_says_that_there_is_none() -> None:
    files, _ = failing_with("/a", b"x")
    files.fail(errno.EIO, on="exists")
    assert [files.exists("/a"), files.exists("/a")] == [False, True]


def test_a_listing_fails_when_it_begins() -> None:
    files, _ = failing_with("/a", b"x")
    files.fail(errno.EMFILE, on="list")
    with pytest.raises(OSError, match="Too many open files"):
        next(files.list("/"))
    assert list(files.list("/")) == [("a", False)]


def test_a_failed_flush_is_forgotten_by_the_next_one() -> None:
    # given a file whose name is on the device and whose bytes are not
    disk = PowerCuts()
    files = FailingFiles(disk)
    fd = files.open("/a", create=True)
    files.flush_directory("/")
    files.write(fd, b"one", 0)
    # when its flush fails, more is written, and the next flush succeeds
    files.fail(errno.EIO, on="flush")
    with pytest.raises(OSError, match="Input/output error"):
        files.flush(fd)
    files.write(fd, b"two", 3)
    files.flush(fd)
    # then only what came after the failure is sure
    left = {state.tree()["/a"] for state in disk.now.every_cut()}
    assert {b"onetwo", b"\0\0\0two"} <= left
    assert all(data is not None and data[3:] == b"two" for data in left)
    # and a killed process finds all of it
    assert disk.now.kill().tree() == {"/a": b"onetwo"}


def test_a_test_can_step_in_before_each_call() -> None:
    seen: list[Call] = []
    files = FailingFiles(MemoryFiles())
    files.before = seen.append
    replace(files, "/a", b"x")
    assert seen == files.calls


def test_it_works_over_real_files_too(tmp_path: object) -> None:
    files = FailingFiles(Files())
    files.fail(errno.EDQUOT, on="flush", path="*.partial")
    with pytest.raises(OSError, match="quota"):
        replace(files, f"{tmp_path}/a", b"x")
    replace(files, f"{tmp_path}/a", b"x")
    assert read_whole(files, f"{tmp_path}/a") == b"x"
