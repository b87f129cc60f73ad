"""A folder is a data path when an import has published it, and nothing starts on it before."""

from __future__ import annotations

import errno
from contextlib import suppress

import pytest

from penstock.errors import DataPathError, DiskFailed, PenstockError
from penstock.log.data_path import DataPath
from penstock.log.disk import Disk
from penstock.log.files import Files
from penstock.log.transfer.opened import opened
from penstock.log.transfer.target import Target
from tests.kit import FailingFiles, MemoryFiles

from .worlds import NODE


def build(files: Files, target: Target) -> None:
    """A data path with one topic, and a journal's folder."""
    with opened(files, target.building, "boot") as node:
        node.create("t").append([b"one"], 1)
        files.make_directory(f"{target.building}/journal")


def starts(files: MemoryFiles) -> list[str] | None:
    """The topics of a node that starts there; None where it refuses."""
    try:
        node = DataPath(NODE, disk=Disk(files), boot="boot")
    except DataPathError:
        return None
    node.abandon()
    return [log.birth.name for log in node.logs]


@pytest.mark.parametrize("there", [False, True], ids=["missing", "empty"])
def test_what_is_published_is_a_data_path(there: bool) -> None:
    # given a target that is not there, or empty but for what a file system has on its root
    files = MemoryFiles()
    if there:
        files.make_directory(NODE)
        files.make_directory(f"{NODE}/lost+found")
    with Target(files, NODE) as target:
        build(files, target)
        # then nothing starts on it before it is published,
        assert starts(files.copy()) is None
        target.publish()
    # and a node does when it is
    assert starts(files) == ["t"]
    assert not files.exists(f"{NODE}/importing")
    assert files.opened() == []


@pytest.mark.parametrize("there", [False, True], ids=["missing", "empty"])
def test_what_is_not_published_is_taken_away(there: bool) -> None:
    files = MemoryFiles()
    if there:
        files.make_directory(NODE)
    before = files.tree()
    with suppress(KeyboardInterrupt), Target(files, NODE) as target:
        build(files, target)
        raise KeyboardInterrupt
    assert files.tree() == before
    assert files.opened() == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param("node.json", "is a data path already", id="data path"),
        pytest.param("t.diskqueue.000000.dat", r"is not empty \(t.diskqueue", id="original folder"),
        pytest.param("topics", r"is not empty \(topics\)", id="topics without a node"),
    ],
)
def test_a_folder_with_anything_in_it_is_refused_and_kept(name: str, message: str) -> None:
    files = MemoryFiles()
    files.make_directory(NODE)
    files.close(files.open(f"{NODE}/{name}", create=True))
    before = files.tree()
    with pytest.raises(DataPathError, match=message):
        Target(files, NODE)
    assert files.tree() == before
    assert files.opened() == []


def test_a_folder_that_somebody_uses_is_refused() -> None:
    files = MemoryFiles()
    with Target(files, NODE) as target:
        before = files.tree()
        with pytest.raises(DataPathError, match="in use by another process"):
            Target(files, NODE)
        with pytest.raises(DataPathError, match="in use by another process"):
            DataPath(NODE, disk=Disk(files), boot="boot")
        assert files.tree() == before
        build(files, target)
        target.publish()
    assert starts(files) == ["t"]


def test_what_a_killed_import_left_is_cleared_by_the_next() -> None:
    # given what an import has left that was killed when half of it was moved
    files = MemoryFiles()
    with Target(files, NODE) as target:
        build(files, target)
        files.rename(f"{NODE}/importing/topics", f"{NODE}/topics")
        left = files.copy()
    # when a node starts, then it is told what to do
    with pytest.raises(DataPathError, match="import that was not finished: run `penstock import` into it again"):
        DataPath(NODE, disk=Disk(left), boot="boot")
    # and the next import begins anew
    with Target(left, NODE) as again:
        assert left.tree() == {NODE: None, f"{NODE}/importing": None}
        build(left, again)
        again.publish()
    assert starts(left) == ["t"]


def test_the_parent_of_a_target_has_to_be_there() -> None:
    with pytest.raises(DiskFailed, match="making /missing/node: No such file or directory"):
        Target(MemoryFiles(), "/missing/node")


def history(files: FailingFiles) -> None:
    with Target(files, NODE) as target:
        build(files, target)
        target.publish()


def test_whatever_call_fails_a_node_starts_on_all_or_on_nothing() -> None:
    # given all calls that one target takes
    whole = FailingFiles(MemoryFiles())
    history(whole)
    for n, call in enumerate(whole.calls):
        if call.method in ("close", "exists"):
            continue
        # when the nth fails
        beneath = MemoryFiles()
        files = FailingFiles(beneath)
        fault = files.fail(errno.EIO, skip=n)
        try:
            history(files)
        except (PenstockError, OSError):
            # then nothing is left that starts, but for an empty folder,
            assert not beneath.exists(NODE) or starts(beneath.copy()) in (None, [])
        else:
            assert starts(beneath.copy()) == ["t"]
            continue
        assert fault.met == 1
        assert beneath.opened() == []
        # and another one works
        history(FailingFiles(beneath))
        assert starts(beneath) == ["t"]
