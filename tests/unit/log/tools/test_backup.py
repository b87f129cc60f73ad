"""Backing up: what was answered before is in the copy, once; no offset is given out twice; the source is untouched."""

from __future__ import annotations

import errno
from collections import Counter
from copy import deepcopy
from random import Random

import pytest

from penstock.errors import DiskFull
from penstock.log import entries as e
from penstock.log.disk import Disk
from penstock.log.files import Files
from penstock.log.journal import Journal
from penstock.log.tools.backup import backup
from penstock.log.tools.verify import verify
from penstock.log.topic_log import TopicLog
from penstock.protocol.batch import records
from tests.kit import Call, FailingFiles, MemoryFiles
from tests.unit.log.tools.busy_node import BusyNode, Topic
from tests.unit.log.tools.node import (
    PATH,
    SECOND,
    START,
    content,
    fill,
    flush,
    put_file,
    segment_paths,
    start,
)

TARGET = "/copy"
CHANGING = ("write", "truncate", "rename", "unlink", "make_directory", "remove_directory", "lock_directory")


def read_all(log: TopicLog) -> dict[int, bytes]:
    found = {}
    offset = 0
    while block := log.read(offset):
        found.update({record.offset: record.body for record in records(block.data)})
        offset = block.next
    return found


def test_a_copy_of_a_node_at_rest_holds_all_of_it() -> None:
    # given a node with messages, some held, some deferred, and a journal
    files = MemoryFiles()
    node = start(files)
    log = node.create("orders")
    fill(log, 60)
    log.hold([3, 12], log.last_time)
    log.delete_below(20)
    flush(log)
    log.defer([b"later"], START + 10**6 * SECOND, START)
    Journal(node.disk, f"{PATH}/journal").append([e.TopicCreated(0, "orders", log.birth.incarnation)], START)
    put_file(files, f"{PATH}/nsqd.dat", b"{}")
    node.close()
    before = files.tree()
    # when it is backed up
    copied = backup(files, PATH, TARGET)
    # then it says what it copied, and the source is as it was
    assert copied.topics == 1
    assert copied.damage == []
    assert dict(copied.records) == {"log": 40, "held": 2, "timetable": 1, "journal": 1}
    assert {path: data for path, data in files.tree().items() if not path.startswith(TARGET)} == before
    # and a start on the copy finds everything
    assert verify(files, TARGET).clean
    again = start(files, TARGET, boot="elsewhere")
    (copy,) = again.logs
    assert again.identity == node.identity
    assert copy.birth[:3] == log.birth[:3]
    assert sorted(read_all(copy)) == [3, 12, *range(20, 60)]
    assert [entry.body for entry in copy.timetable.entries(9)] == [b"later"]
    assert list(Journal(Disk(files), f"{TARGET}/journal").replay()) == [
        e.TopicCreated(0, "orders", log.birth.incarnation)
    ]
    assert content(files, f"{TARGET}/nsqd.dat") == b"{}"


def test_offsets_of_the_copy_are_none_that_the_node_gives_out_later() -> None:
    files = MemoryFiles()
    node = start(files)
    log = node.create("orders")
    fill(log, 10)
    backup(files, PATH, TARGET)
    copy = start(files, TARGET).logs[0]
    assert copy.end - log.end > 200 * 24 * 3600 * 1_000_000
    assert copy.birth.base + copy.end < 1 << 63


def test_a_copy_that_fails_leaves_nothing_and_can_be_made_again() -> None:
    # given a node, and how many calls a copy of it takes
    whole = MemoryFiles()
    node = start(whole)
    log = node.create("orders")
    fill(log, 20)
    log.defer([b"later"], START + 10**6 * SECOND, START)
    node.close()
    counted = FailingFiles(whole.copy())
    backup(counted, PATH, TARGET)
    # when the device is full at one of them
    fails = 0
    for number in range(len(counted.calls)):
        files = whole.copy()
        failing = FailingFiles(files)
        failing.fail(errno.ENOSPC, skip=number, on=("open", "write", "flush", "rename", "make_directory"))
        try:
            backup(failing, PATH, TARGET)
            break
        except DiskFull:
            fails += 1
        # then nothing is left of it, and the next one works
        assert not files.exists(TARGET) or not list(files.list(TARGET))
        assert files.opened() == []
        backup(files, PATH, TARGET)
        assert verify(files, TARGET).clean
    assert fails > 10


def test_a_batch_that_is_being_written_is_left_out() -> None:
    files = MemoryFiles()
    log = start(files).create("orders")
    fill(log, 10)
    path = segment_paths(log)[-1]
    put_file(files, path, content(files, path) + content(files, path)[:50])
    assert backup(files, PATH, TARGET).damage == []
    copied = path.replace(PATH, TARGET)
    assert content(files, copied) == content(files, path)[:-50]


@pytest.mark.parametrize("seed", range(60))
def test_a_copy_of_a_busy_node_is_what_the_node_was(seed: int) -> None:
    copy_while_it_runs(seed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_many_copies_of_busy_nodes_are_what_the_nodes_were(part: int) -> None:
    for seed in range(1000 + 100 * part, 1100 + 100 * part):
        copy_while_it_runs(seed)


def copy_while_it_runs(seed: int) -> None:
    # given a node that has done this and that
    rng = Random(seed)
    files = MemoryFiles()
    node = BusyNode(files, rng)
    for _ in range(rng.randrange(150)):
        node.step()
    before = {
        topic.log.birth.folder: deepcopy((topic.bodies, topic.unfinished, topic.deferred)) for topic in node.topics
    }
    told = {topic.log.birth.folder: _last_told(files, topic.log) for topic in node.topics}
    # when it is backed up while it goes on, between any two calls of the backup
    looking = FailingFiles(files)
    pace = rng.choice([0.02, 0.2, 1])

    def go_on(_call: Call) -> None:
        if rng.random() < pace:
            node.step()

    looking.before = go_on
    copied = backup(looking, PATH, TARGET)
    # then the copy is clean, and a start on it finds every topic that was there all the time
    assert copied.damage == []
    report = verify(files, TARGET)
    assert report.clean, report
    logs = {log.birth.folder: log for log in start(files, TARGET, boot="elsewhere").logs}
    assert files.opened()  # the node's own
    for topic in node.topics:
        folder = topic.log.birth.folder
        if folder in before:
            _compare(logs[folder], topic, *before[folder])
            assert _last_told(files, logs[folder], TARGET) >= told[folder]


def _compare(
    copy: TopicLog, topic: Topic, bodies: dict[int, bytes], unfinished: set[int], deferred: list[bytes]
) -> None:
    # it goes on where the node never does
    assert copy.end > topic.log.end + 10**12
    first = copy.end
    # all that was there, and is not deleted, is there; what is unfinished wherever it lies; and nothing wrong
    found = read_all(copy)
    assert {offset: topic.bodies[offset] for offset in found} == found
    assert {offset for offset in bodies if offset >= topic.below} <= found.keys()
    assert unfinished & topic.unfinished <= found.keys()
    # what was deferred comes once
    now = START + 10**6 * SECOND
    while True:
        while work := copy.timetable.prepare(now):
            work()
        if not copy.move_due(now):
            break
    late = [body for offset, body in read_all(copy).items() if offset >= first]
    moved = [body for offset, body in topic.bodies.items() if offset in found]
    counts = Counter([*late, *(body for body in moved)])
    assert max(counts.values(), default=1) == 1
    gone = {body for offset, body in topic.bodies.items() if offset not in found and offset < topic.below}
    assert set(deferred) <= counts.keys() | gone


def _last_told(files: Files, log: TopicLog, path: str = PATH) -> int:
    """The highest offset that the journal says of a topic; it is one that the log has."""
    if not files.exists(f"{path}/journal"):
        return 0
    found = [
        entry.offset
        for entry in Journal(Disk(files), f"{path}/journal").replay()
        if isinstance(entry, e.ReaderMoved) and entry.name == log.birth.folder
    ]
    highest = max(found, default=0)
    assert highest <= max((segment.end for segment in log.chain.segments), default=0)
    return highest
