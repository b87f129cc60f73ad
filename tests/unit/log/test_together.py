"""Many topics flushed at once: every one is on the device then, and what each has left to do is little."""

from __future__ import annotations

import errno
import random

import pytest

from penstock.log.data_path import DataPath
from penstock.log.disk import Disk
from penstock.log.together import MANY, flush_together
from penstock.log.topic_log import TopicLog
from tests.kit import FailingFiles, MemoryFiles, PowerCuts

PATH = "/data"


def node(files: MemoryFiles | FailingFiles, topics: int = MANY) -> tuple[DataPath, list[TopicLog]]:
    files.make_directory(PATH)
    data_path = DataPath(PATH, disk=Disk(files), boot="b")
    logs = [data_path.create(f"t{number}") for number in range(topics)]
    for log in logs:
        log.append([b"body"], 1)
    return data_path, logs


def test_after_it_the_flush_of_each_writes_nothing_more() -> None:
    # given new topics with a message each
    files = FailingFiles(MemoryFiles())
    _, logs = node(files)
    # when they are flushed together, and then each by itself
    flush_together(files, PATH, logs)()
    assert not any(log.birth_waits for log in logs)
    files.calls.clear()
    for log in logs:
        work = log.work()
        assert work is not None
        work()
    # then nobody writes a topic.json again, and all are flushed
    assert not [call for call in files.calls if "topic.json" in call.paths[0]]
    assert all(log.flushed == log.end and not log.unflushed for log in logs)


def test_while_a_thread_is_at_it_a_log_wants_nothing_else() -> None:
    files = FailingFiles(MemoryFiles())
    _, logs = node(files)
    work = flush_together(files, PATH, logs)
    assert all(log.under_way and log.work() is None for log in logs)
    work()
    assert not any(log.under_way for log in logs)


@pytest.mark.parametrize("on", ["write", "flush", "flush_all", "flush_directory", "rename"])
def test_what_fails_is_left_to_each_log(on: str) -> None:
    # given a call that fails somewhere in the middle
    files = FailingFiles(MemoryFiles())
    _, logs = node(files)
    fault = files.fail(errno.EIO, on=on, skip=0 if on == "flush_all" else 5)
    flush_together(files, PATH, logs)()
    assert fault.met
    # then no log is refused, and each flushes itself
    for log in logs:
        while log.unflushed and (work := log.work()):
            work()
    assert all(log.flushed == log.end and log.refused is None for log in logs)


def test_a_stop_with_many_new_topics_leaves_all_of_them_on_the_device() -> None:
    # given a node that stops with more topics than are flushed one by one
    cuts = PowerCuts()
    data_path, logs = node(cuts, MANY + 3)
    ends = {log.birth.incarnation: log.end for log in logs}
    data_path.close()
    # when the power is cut right behind it
    for state in cuts.now.cuts(random.Random(1), 5):
        again = DataPath(PATH, disk=Disk(state), boot="another")
        # then every topic is there, whole
        assert {log.birth.incarnation: log.end for log in again.logs} == ends
        again.abandon()
