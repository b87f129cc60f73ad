"""Topics that are deleted, and a power cut: one that comes back has all its files, or none that was in use."""

from __future__ import annotations

import pytest

from penstock.log.data_path import DataPath
from penstock.log.disk import Disk
from penstock.log.topic_log import LogOptions
from tests.kit import PowerCuts
from tests.unit.log.builders import flush_log

PATH = "/data"


def opened(files: object, boot: str) -> DataPath:
    return DataPath(PATH, disk=Disk(files), options=LogOptions(), boot=boot)  # type: ignore[arg-type]


@pytest.mark.parametrize("killed", [False, True])
def test_the_sweep_of_a_start_leaves_no_half_of_a_topic_whose_deletion_a_power_cut_takes_back(killed: bool) -> None:
    # given a topic with a message, on the device
    files = PowerCuts()
    files.make_directory(PATH)
    files.flush_all(PATH)
    data = opened(files, "first")
    log = data.create("t")
    log.append([b"a"], 0)
    flush_log(log)
    files.flush_all(PATH)
    # when it is deleted, and before a thread comes to that work the sweep of a start removes it
    if killed:
        data.delete(log)
        data.abandon()
        data = opened(files := files.now.kill(), "first")
        data.sweep()()
    else:
        sweep = data.sweep()
        data.delete(log)
        sweep()
    # then after any power cut it is gone, or there with its message
    for cut in files.now.every_cut():
        for found in opened(cut, "second").logs:
            assert found.read(0) is not None
            assert found.birth.base == log.birth.base
