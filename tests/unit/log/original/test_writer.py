"""What is written is a folder that nsqd would start from, or nothing."""

from __future__ import annotations

import errno
import random
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import DataPathError, DiskFull, PenstockError
from penstock.log.files import Files
from penstock.log.original import Folder, FolderWriter
from penstock.protocol.batch import encode_records, positions
from tests.kit import FailingFiles, MemoryFiles, PowerCuts

from .folders import FOLDER, START, count, record

if TYPE_CHECKING:
    from collections.abc import Sequence


def write(files: Files, path: str = FOLDER) -> None:
    """A folder with one topic, two channels and five messages."""
    with FolderWriter(files, path, max_bytes_per_file=100) as writer:
        writer.topic("t", paused=True).put(START, b"%016x" % 9, 0, b"of the topic")
        channel = writer.channel("t", "c")
        for n in range(4):
            channel.put(START + n, b"%016x" % n, n, b"of the channel")
        writer.channel("t", "idle", paused=True)
        writer.finish()


def read(files: Files, path: str = FOLDER) -> list[tuple[str, bool, list[tuple[str, bool, int]], int]]:
    """By topic: its name, whether it is paused, its channels with the number of messages, and its own number."""
    with Folder(files, path) as folder:
        found = []
        for topic in folder.topics.values():
            unfinished = list(topic.unfinished(f"{path}.scratch"))
            channels = [
                (name, channel.paused, sum(name in message.attempts for message in unfinished))
                for name, channel in topic.channels.items()
            ]
            found.append((topic.name, topic.paused, channels, len(list(topic.unrouted()))))
        assert folder.findings == {}
        return found


WRITTEN = [("t", True, [("c", False, 4), ("idle", True, 0)], 1)]


def test_a_folder_that_was_written_reads_as_it_was_meant(tmp_path: Path) -> None:
    # given a real folder
    write(Files(), str(tmp_path / "nsqd"))
    # when it is read, then all is there
    assert read(Files(), str(tmp_path / "nsqd")) == WRITTEN
    # and it has the names and the texts of nsqd
    texts = {path.name: path.read_bytes() for path in (tmp_path / "nsqd").iterdir()}
    assert sorted(texts) == [
        "nsqd.dat",
        "t.diskqueue.000000.dat",
        "t.diskqueue.meta.dat",
        "t:c.diskqueue.000000.dat",
        "t:c.diskqueue.000001.dat",
        "t:c.diskqueue.meta.dat",
    ]
    assert texts["t:c.diskqueue.meta.dat"] == b"4\n0,0\n1,88\n"
    assert texts["t:c.diskqueue.000000.dat"] == b"".join(
        record(n, b"of the channel", attempts=n, time=START + n) for n in (0, 1)
    )
    assert texts["nsqd.dat"] == (
        b'{"topics":[{"name":"t","paused":true,"channels":[{"name":"c","paused":false},'
        b'{"name":"idle","paused":true}]}],"version":"1.3.0"}'
    )


@given(st.lists(st.integers(0, 300), max_size=30), st.integers(1, 700))
def test_files_roll_before_they_grow_too_large(sizes: list[int], largest: int) -> None:
    # given messages of any size
    files = MemoryFiles()
    with FolderWriter(files, FOLDER, max_bytes_per_file=largest) as writer:
        queue = writer.topic("t")
        for n, size in enumerate(sizes):
            queue.put(START + n, b"%016x" % n, 0, b"x" * size)
        writer.finish()
    # when the files are looked at
    contents = [data for path, data in sorted(files.tree().items()) if data is not None and path[-10:-4].isdigit()]
    # then none is too large but for one message, none could have taken the next one, and no record is in two
    assert all(len(data) <= largest or count(data) == 1 for data in contents)
    assert all(len(data) + 4 + int.from_bytes(after[:4]) > largest for data, after in pairwise(contents))
    assert sum(map(count, contents)) == len(sizes) == queue.count
    assert queue.largest == writer.largest == max(sizes, default=0)
    # and all is read again
    with Folder(files, FOLDER) as folder:
        assert [len(message.body) for message in folder.topics["t"].unrouted()] == sizes
        assert folder.findings == {}


def test_files_that_are_full_to_the_byte_are_read_whole() -> None:
    # given files into which a number of records goes without rest
    files = MemoryFiles()
    with FolderWriter(files, FOLDER, max_bytes_per_file=400) as writer:
        queue = writer.topic("t")
        for n in range(12):
            queue.put(START, b"%016x" % n, 0, b"x" * 70)
        writer.finish()
    assert [len(data or b"") for path, data in sorted(files.tree().items()) if "0000" in path] == [400, 400, 400]
    # when they are read, then nothing is missing and nothing is wrong
    assert read(files) == [("t", False, [], 12)]


def test_records_are_taken_as_they_stand_in_a_batch() -> None:
    # given a batch of our log
    bodies = [b"", b"one", b"two" * 100]
    batch = encode_records(5, 1000, bodies, START, seed=7)
    # when its records are written
    files = MemoryFiles()
    with FolderWriter(files, FOLDER, max_bytes_per_file=100) as writer:
        queue = writer.topic("t")
        queue.put_records(batch, positions(batch, 0, len(batch)))
        assert (queue.count, queue.largest) == (3, 300)
        writer.finish()
    # then they are messages of the queue
    with Folder(files, FOLDER) as folder:
        assert [tuple(message) for message in folder.topics["t"].unrouted()] == [
            (START, b"%016x" % (1005 + n), 0, body) for n, body in enumerate(bodies)
        ]


@pytest.mark.parametrize(
    ("data", "starts"),
    [(b"\0\0\0\x19" + bytes(40), [0]), (record(1), [1]), (record(1)[:-1], [0]), (b"\xff" * 40, [0])],
)
def test_what_is_no_record_is_not_written(data: bytes, starts: Sequence[int]) -> None:
    with FolderWriter(MemoryFiles(), FOLDER) as writer, pytest.raises(ValueError, match="no record"):
        writer.topic("t").put_records(data, starts)


@pytest.mark.parametrize("name", ["", "a b", "a:b", "t#ephemeral", "a" * 65])
def test_a_name_that_has_no_queue_in_nsqd_is_refused(name: str) -> None:
    with FolderWriter(MemoryFiles(), FOLDER) as writer:
        writer.topic("t")
        with pytest.raises(ValueError, match="nsqd keeps no queue"):
            writer.topic(name)
        with pytest.raises(ValueError, match="nsqd keeps no queue"):
            writer.channel("t", name)


def test_each_queue_is_written_once_and_in_its_topic() -> None:
    with FolderWriter(MemoryFiles(), FOLDER) as writer:
        queue = writer.topic("t")
        writer.channel("t", "c")
        with pytest.raises(ValueError, match="t twice"):
            writer.topic("t")
        with pytest.raises(ValueError, match="t:c twice"):
            writer.channel("t", "c")
        with pytest.raises(ValueError, match="no topic u"):
            writer.channel("u", "c")
        queue.put(START, b"%016x" % 1, 0, b"")
        queue.finish()
        with pytest.raises(ValueError, match="t is finished"):
            queue.put(START, b"%016x" % 2, 0, b"")


def test_a_queue_that_is_finished_early_needs_no_descriptor() -> None:
    # given few descriptors
    files = MemoryFiles()
    files.descriptors = 4
    # when more queues than that are written one after the other
    with FolderWriter(files, FOLDER) as writer:
        writer.topic("t")
        for n in range(20):
            queue = writer.channel("t", f"c{n}")
            queue.put(START, b"%016x" % 1, 0, b"")
            queue.finish()
        writer.finish()
    # then all is there
    assert [number for _, _, number in read(files)[0][2]] == [1] * 20


def test_a_folder_that_holds_anything_is_refused_and_stays() -> None:
    files = MemoryFiles()
    files.make_directory(FOLDER)
    files.make_directory(f"{FOLDER}/topics")
    with pytest.raises(DataPathError, match="not empty"):
        FolderWriter(files, FOLDER)
    assert files.tree() == {FOLDER: None, f"{FOLDER}/topics": None}
    assert files.opened() == []


def test_nsqd_cannot_start_on_it_before_it_is_finished() -> None:
    files = MemoryFiles()
    with FolderWriter(files, FOLDER) as writer:
        with pytest.raises(BlockingIOError):
            files.lock_directory(FOLDER)
        writer.finish()
        files.close(files.lock_directory(FOLDER))


def test_the_root_of_a_file_system_counts_as_empty() -> None:
    files = MemoryFiles()
    files.make_directory(FOLDER)
    files.make_directory(f"{FOLDER}/lost+found")
    with FolderWriter(files, FOLDER) as writer:
        writer.topic("t")
        writer.finish()
    assert files.exists(f"{FOLDER}/nsqd.dat")


@pytest.mark.parametrize("there", [False, True], ids=["a new folder", "an empty folder"])
def test_one_that_is_not_finished_leaves_nothing_behind(there: bool) -> None:
    files = MemoryFiles()
    if there:
        files.make_directory(FOLDER)
    before = files.tree()
    with FolderWriter(files, FOLDER, max_bytes_per_file=50) as writer:
        queue = writer.topic("t")
        for n in range(5):
            queue.put(START, b"%016x" % n, 0, b"x" * 40)
    assert files.tree() == before
    assert files.opened() == []


def test_whatever_call_fails_there_is_a_whole_folder_or_none() -> None:
    # given a folder that is written by way of these calls
    whole = FailingFiles(MemoryFiles())
    write(whole)
    for n, call in enumerate(whole.calls):
        if call.method in ("exists", "close", "list"):
            continue
        # when the nth fails
        beneath = MemoryFiles()
        files = FailingFiles(beneath)
        fault = files.fail(errno.ENOSPC, skip=n)
        with pytest.raises(DiskFull):
            write(files)
        # then nothing is there, and the next time works
        assert fault.met == 1
        assert set(beneath.tree()) <= {FOLDER}
        assert beneath.opened() == []
        write(files)
        assert read(files) == WRITTEN


def test_after_a_power_cut_a_list_that_is_there_means_that_all_is_there() -> None:
    # given a folder that is written on a disk whose power may be cut after each operation
    disk = PowerCuts()
    write(disk)
    rng = random.Random(2)
    whole = 0
    for moment in disk.moments():
        for state in moment.cuts(rng, 10):
            # when the list is there after a cut
            if f"{FOLDER}/nsqd.dat" not in state.tree():
                continue
            # then so is everything else
            assert read(state) == WRITTEN, state
            whole += 1
    assert whole
    # and once it was answered, it stays
    assert all(read(state) == WRITTEN for state in disk.now.every_cut(50))


def test_errors_are_typed_from_the_beginning() -> None:
    files = FailingFiles(MemoryFiles())
    files.fail(errno.EACCES, on="make_directory")
    with pytest.raises(PenstockError, match="making /nsqd: Permission denied"):
        FolderWriter(files, FOLDER)
