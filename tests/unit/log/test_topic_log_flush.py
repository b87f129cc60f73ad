"""A topic's log whose flush fails: nothing counts that may be lost, nothing is flushed twice, and it heals."""

from __future__ import annotations

import errno

import pytest

from penstock.errors import FlushFailed, Refused, TooManyFiles
from penstock.log.topic_log import TopicLog
from penstock.protocol.batch import HEADER, RECORD
from tests.kit import FailingFiles, MemoryFiles
from tests.unit.log.builders import DIRECTORY, flush_log, new_log, open_log, read_all, texts


def names(files: FailingFiles) -> list[str]:
    return sorted(name for name, _ in files.list(DIRECTORY))


def flushed_paths(files: FailingFiles) -> list[str]:
    return [call.paths[0].removeprefix(f"{DIRECTORY}/") for call in files.calls if call.method.startswith("flush")]


def still_refused(log: TopicLog) -> FlushFailed | None:
    return log.refused


def filled(files: FailingFiles, *, sync_every: int = 1) -> TopicLog:
    """Three segments, of which the first is flushed."""
    log = new_log(files, max_bytes_per_file=HEADER + RECORD + 1, sync_every=sync_every)
    log.append([b"0"], 0)
    flush_log(log)
    log.append([b"1"], 0)
    log.append([b"2"], 0)
    return log


EXPECTED = [(0, b"0"), (1, b"1"), (2, b"2")]


@pytest.mark.parametrize("which", [1, 2])
def test_what_a_failed_flush_may_have_lost_is_copied_flushed_and_read_again(which: int) -> None:
    # given a flush that fails at one of two segments
    files = FailingFiles(MemoryFiles())
    log = filled(files)
    files.fail(errno.EIO, on="flush", path=f"*/{which:020d}.log")
    work = log.work()
    assert work is not None
    work()
    # then what waited for it is not answered, and nothing more is taken
    assert isinstance(log.refused, FlushFailed)
    assert (log.committed, texts(read_all(log))) == (1, EXPECTED[:1])
    with pytest.raises(Refused, match="orders"):
        log.append([b"more"], 0)
    # when a thread has its next turn
    files.calls.clear()
    flush_log(log)
    # then all of it stands in new files, flushed before they got their names, and the one that failed was left alone
    copies = [call.paths for call in files.calls if call.method == "rename" and "rescue" in call.paths[0]]
    assert [target.rpartition("/")[2] for _, target in copies] == [f"{at:020d}.log" for at in (1, 2)]
    assert flushed_paths(files)[:2] == [f"{at:020d}.rescue" for at in (1, 2)]
    assert f"{which:020d}.log" not in flushed_paths(files)
    assert still_refused(log) is None
    assert (log.committed, texts(read_all(log))) == (3, EXPECTED)
    assert log.append([b"3"], 0) == 3
    for again in (log, open_log(files.beneath)):
        log.relax()
        assert texts(read_all(again, 0))[:3] == EXPECTED
    assert not [name for name in names(files) if "rescue" in name]


def test_where_a_copy_fails_too_it_is_made_again_until_it_is_flushed() -> None:
    files = FailingFiles(MemoryFiles())
    log = filled(files)
    files.fail(errno.EIO, on="flush", path="*.log")
    files.fail(errno.ENOSPC, on="write", path="*.rescue", times=2)
    files.fail(errno.EIO, on="flush", path="*.rescue")
    for _ in range(4):  # the flush, and three copies
        work = log.work()
        assert work is not None
        work()
        assert log.refused is not None
        assert log.committed == 1
    files.heal()
    flush_log(log)
    assert still_refused(log) is None
    assert texts(read_all(log)) == EXPECTED


@pytest.mark.parametrize(
    ("on", "path"), [("write", "*topic.json*"), ("flush", "*topic.json*"), ("flush_directory", "*")]
)
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_where_no_batch_can_have_been_lost_nothing_is_copied(on: str, path: str, error: int) -> None:
    # given a new log whose first flush comes no further than its small file, or not as far as its directory
    files = FailingFiles(MemoryFiles())
    log = new_log(files, sync_every=1)
    log.append([b"0"], 0)
    fault = files.fail(error, on=on, path=path, times=2)
    for _ in range(2):
        work = log.work()
        assert work is not None
        work()
        # then what waited is not answered
        assert log.refused is not None
        assert (log.committed, read_all(log)) == (0, [])
    assert fault.met == 2
    # when that is over
    files.calls.clear()
    flush_log(log)
    # then all is flushed where it is
    assert still_refused(log) is None
    assert (log.committed, texts(read_all(log))) == (1, EXPECTED[:1])
    assert not [call for call in files.calls if "rescue" in call.paths[0]]
    assert "topic.json.partial" in flushed_paths(files)


def test_a_log_that_cannot_be_flushed_says_so_when_it_is_closed() -> None:
    files = FailingFiles(MemoryFiles())
    log = filled(files)
    files.fail(errno.EIO, on="flush", path="*.log", times=None)
    with pytest.raises(FlushFailed):
        log.close()
    assert len(log.disk) == 0
    assert texts(read_all(open_log(files.beneath, sync_every=2500))) == EXPECTED


def test_a_flush_that_cannot_begin_holds_no_file() -> None:
    # given something to flush in the log, and in a timetable whose file cannot be opened now
    files = FailingFiles(MemoryFiles())
    log = filled(files)
    log.defer([b"later"], 1 << 62, 0)
    (name,) = [name for name, _ in files.list(f"{DIRECTORY}/timetable")]
    log.disk.close(f"{DIRECTORY}/timetable/{name}")
    files.fail(errno.EMFILE, on="open", path="*timetable*")
    log.disk.limit = 1
    with pytest.raises(TooManyFiles):
        log.work()
    # then the next turn does it, and nothing is held open in the end
    flush_log(log)
    assert log.flushed == 3
    log.close()
    assert len(log.disk) == 0


def test_a_log_can_be_closed_as_soon_as_it_is_healed() -> None:
    # given a batch that was flushed, and one whose flush failed and that was copied to a new file
    files = FailingFiles(MemoryFiles())
    log = new_log(files, sync_every=1)
    log.append([b"0"], 0)
    flush_log(log)
    log.append([b"1"], 0)
    files.fail(errno.EIO, on="flush", path="*.log")
    for _ in range(2):
        work = log.work()
        assert work is not None
        work()
    assert still_refused(log) is None
    # when it is closed with nothing appended since, then it is all there
    log.close()
    assert texts(read_all(open_log(files.beneath))) == EXPECTED[:2]


@pytest.mark.parametrize("flushed", [0, 1, 150])
def test_new_files_take_the_place_of_old_ones_though_nothing_can_be_read_then(flushed: int) -> None:
    # given a segment of which a part is flushed, with marks in its index, and a flush of the rest that fails
    files = FailingFiles(MemoryFiles())
    log = new_log(files, sync_every=1)
    expected = []
    for number in range(300):
        if number == flushed:
            flush_log(log)
        log.append([b"%d" % number + b"x" * 2000], number)
        expected.append((number, b"%d" % number + b"x" * 2000))
    files.fail(errno.EIO, on="flush", path="*.log")
    for _ in range(2):  # the flush, and the copy
        work = log.work()
        assert work is not None
        work.run()
        fault = files.fail(errno.EIO, on="read", times=None)
        work.finish()
        files.heal(fault)
    # then all is read as before, from everywhere, by offset and by time; no damage was met
    assert still_refused(log) is None
    log.relax()
    for found in (log, open_log(files.beneath)):
        assert texts(read_all(found)) == expected
        assert [found.at_time(time) for time in range(300)] == list(range(300))
        assert [block.first for offset in range(300) if (block := found.read(offset, 1))] == list(range(300))
        assert found.holes(0, 300) == []
        assert found.disk.damages == []
    log.append([b"more"], 300)
    flush_log(log)
    assert texts(read_all(open_log(files.beneath), 300)) == [(300, b"more")]
