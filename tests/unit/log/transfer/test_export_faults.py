"""An export that fails or is killed leaves no folder that nsqd takes for a whole one, and the data path as it was."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from penstock.errors import PenstockError
from penstock.log.files import Files
from penstock.log.transfer import export_folder, import_folder
from tests.kit import FailingFiles, MemoryFiles, PowerCuts
from tests.unit.log.original.folders import FOLDER

from .worlds import EXPORT, NODE, NOW, Channel, Topic, expected, new_files, of_data_path, of_folder

TOPICS = {
    "t": Topic({"a": Channel({1: 0, 2: 1, 3: 0}), "b": Channel({3: 0}, paused=True)}, own=[4, 5]),
    "u": Topic(own=[6], paused=True),
}
WHOLE = expected(TOPICS)


@pytest.fixture
def new_node() -> Callable[[], MemoryFiles]:
    files = new_files(TOPICS)
    import_folder(FOLDER, NODE, now=NOW, files=files, boot="boot")
    return files.copy


def run(files: Files) -> None:
    export_folder(NODE, EXPORT, files=files, boot="boot", max_bytes_per_file=100)


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC, errno.EMFILE])
def test_whatever_call_fails_there_is_no_half_folder(error: int, new_node: Callable[[], MemoryFiles]) -> None:
    # given all calls of an export
    whole = FailingFiles(new_node())
    run(whole)
    assert of_folder(whole.beneath, EXPORT) == WHOLE
    for n, call in enumerate(whole.calls):
        if call.method in ("close", "exists"):
            continue
        # when the nth fails
        beneath = new_node()
        files = FailingFiles(beneath)
        fault = files.fail(error, skip=n)
        try:
            run(files)
        except PenstockError:
            # then nothing stands there that nsqd would start from
            assert not beneath.exists(f"{EXPORT}/nsqd.dat")
        else:
            assert of_folder(beneath, EXPORT) == WHOLE
        assert fault.met == 1
        assert beneath.opened() == []
        # and the data path holds what it held
        assert of_data_path(beneath) == WHOLE


def test_a_process_that_is_killed_leaves_a_whole_folder_or_one_without_its_list(
    new_node: Callable[[], MemoryFiles],
) -> None:
    disk = PowerCuts(new_node())
    run(disk)
    for moment in disk.moments():
        killed = moment.kill()
        assert not killed.exists(f"{EXPORT}/nsqd.dat") or of_folder(killed, EXPORT) == WHOLE
        assert of_data_path(killed) == WHOLE


def test_a_power_cut_takes_nothing_of_a_folder_that_is_finished(new_node: Callable[[], MemoryFiles]) -> None:
    disk = PowerCuts(new_node())
    run(disk)
    for state in disk.now.every_cut():
        assert of_folder(state, EXPORT) == WHOLE
