"""An import that is cut, killed or fails leaves nothing that starts as if it were whole, and can be run again."""

from __future__ import annotations

import errno
import random

import pytest

from penstock.errors import DataPathError, PenstockError
from penstock.log.files import Files
from penstock.log.topic_log import LogOptions
from penstock.log.transfer import import_folder
from tests.kit import FailingFiles, MemoryFiles, PowerCuts
from tests.unit.log.original.folders import FOLDER

from .worlds import NODE, NOW, Channel, Topic, expected, new_files, of_data_path, of_folder

TOPICS = {
    "t": Topic({"a": Channel({1: 0, 2: 1, 3: 0}), "b": Channel({3: 0}, paused=True)}, own=[4, 5]),
    "u": Topic(own=[6], paused=True),
}
WHOLE = expected(TOPICS)
UNSTABLE = ("close", "exists")  # their errors are nobody's, or are no errors


def run(files: Files, boot: str = "boot") -> None:
    import_folder(FOLDER, NODE, now=NOW, files=files, options=LogOptions(max_bytes_per_file=100), boot=boot)


def what_starts(files: MemoryFiles) -> dict[str, object] | None:
    """What a node finds that is started there; None where it refuses or there is nothing to start on."""
    try:
        return of_data_path(files, boot="another")
    except DataPathError:
        return None


def assert_all_or_nothing(files: MemoryFiles) -> bool:
    """Whether a node that starts finds everything; else there is nothing, or an empty folder."""
    if files.exists(NODE) and not list(files.list(NODE)):
        return False
    found = what_starts(files.copy())
    assert found in (None, WHOLE)
    return found is not None


def assert_can_run_again(files: MemoryFiles) -> None:
    run(files, boot="another")
    assert of_data_path(files, boot="another") == WHOLE
    assert of_folder(files) == WHOLE


@pytest.mark.parametrize("error", [errno.EIO, errno.EMFILE])
def test_whatever_call_fails_all_is_there_or_nothing_and_it_can_run_again(error: int) -> None:
    # given all calls of an import
    whole = FailingFiles(new_files(TOPICS))
    run(whole)
    for n, call in enumerate(whole.calls):
        if call.method in UNSTABLE:
            continue
        # when the nth fails
        beneath = new_files(TOPICS)
        files = FailingFiles(beneath)
        fault = files.fail(error, skip=n)
        try:
            run(files)
        except PenstockError:
            assert not assert_all_or_nothing(beneath)
            assert_can_run_again(beneath)
        else:  # it did not matter: an index, the last folder
            assert of_data_path(beneath) == WHOLE
        # then it is a typed error, after which nothing is open
        assert fault.met == 1
        assert beneath.opened() == []


def test_a_disk_that_is_full_at_any_byte_ends_the_import_and_gives_the_room_back() -> None:
    room = 0
    while True:
        # given a disk with so much room
        files = new_files(TOPICS)
        used = files.used
        files.capacity = used + room
        try:
            run(files)
        except PenstockError:
            # when it is too little, then nothing of it is left
            assert not files.exists(NODE)
            assert files.used == used
        else:
            break
        room += 37
    assert of_data_path(files) == WHOLE


def test_a_process_that_is_killed_at_any_moment_leaves_all_or_what_is_refused() -> None:
    # given an import, step by step
    disk = PowerCuts(new_files(TOPICS))
    run(disk)
    whole = [assert_all_or_nothing(moment.kill()) for moment in disk.moments()]
    # then from some step on it is whole, and never before
    assert whole == sorted(whole)
    assert whole[-1]
    # and wherever it ended, it can be run again
    for moment, done in zip(disk.moments(), whole, strict=True):
        if not done:
            assert_can_run_again(moment.kill())


def test_a_power_cut_at_any_moment_leaves_all_or_what_is_refused() -> None:
    # given an import that said it was done
    disk = PowerCuts(new_files(TOPICS))
    run(disk)
    rng = random.Random(1)
    # when the power is cut at any time before, then all is there or nothing that starts,
    for moment in disk.moments():
        states = [state for state in moment.cuts(rng, 3) if not assert_all_or_nothing(state.copy())]
        for state in states[:1]:
            assert_can_run_again(state)
    # and all of it after
    for state in disk.now.every_cut():
        assert assert_all_or_nothing(state)
