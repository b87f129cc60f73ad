"""The journal: blocks, replays, compaction, and what failing disks, kills and power cuts leave of them."""

from __future__ import annotations

import errno
import random
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import CorruptLog, DataPathError, DiskFailed, DiskFull, FlushFailed, LogError, TooLarge
from penstock.log import entries as e
from penstock.log import journal as journal_module
from penstock.log import state as state_module
from penstock.log.disk import Disk
from penstock.log.files import Files
from penstock.log.journal import SEED, Journal
from penstock.log.state import NodeState
from penstock.protocol import batch
from tests.kit import FailingFiles, MemoryFiles, PowerCuts
from tests.unit.log.owner import Facts, Owner, assert_sound, facts

PLACE: Final = "/journal"


def opened(files: Files, **options: Any) -> Journal:
    return Journal(Disk(files), PLACE, **options)


def replayed(journal: Journal) -> NodeState:
    state = NodeState()
    state.apply_all(journal.replay())
    return state


def told(files: Files) -> list[e.Entry]:
    """What a start finds."""
    return [entry for entry in opened(files).replay() if not isinstance(entry, e.Complete)]


def flush(journal: Journal) -> None:
    """All that there is to do for the thread."""
    for _ in range(10):
        if not journal.wants_flush:
            return
        if work := journal.flush_work():
            work()
    pytest.fail("there is always more to flush")


def compact(journal: Journal, state: NodeState) -> None:
    journal.compact(state.slice)
    while journal.write_slice(9):
        pass
    flush(journal)


def topics(*numbers: int) -> list[e.Entry]:
    return [e.TopicCreated(number, f"t{number}", "life") for number in numbers]


def names(files: MemoryFiles) -> list[str]:
    """The journal's files."""
    return sorted(path.removeprefix(f"{PLACE}/") for path in files.tree() if path.endswith(".log"))


# Blocks


def test_what_was_appended_is_replayed_in_order() -> None:
    # given a journal with two blocks
    files = MemoryFiles()
    journal = opened(files)
    assert journal.append(topics(1, 2), 5) == 2
    assert journal.append([e.TopicDeleted(1)], 6) == 3
    # then a start finds them, and goes on behind them
    again = opened(files)
    assert list(again.replay()) == [*topics(1, 2), e.TopicDeleted(1)]
    assert again.append(topics(3), 7) == 4
    assert told(files) == [*topics(1, 2), e.TopicDeleted(1), *topics(3)]


def test_an_empty_journal_has_nothing_to_replay_and_nothing_to_flush() -> None:
    journal = opened(MemoryFiles())
    assert list(journal.replay()) == []
    assert journal.append([], 1) == 0
    assert not journal.wants_flush
    assert journal.flush_work() is None
    assert not journal.wants_compaction


def test_the_entries_of_one_append_are_one_write() -> None:
    files = FailingFiles(MemoryFiles())
    journal = opened(files)
    files.calls.clear()
    journal.append(topics(*range(1000)), 1)
    assert [call.method for call in files.calls if call.method == "write"] == ["write"]


def test_a_torn_block_is_dropped_whole_wherever_it_is_cut() -> None:
    # given a journal whose last block holds two entries
    files = MemoryFiles()
    journal = opened(files)
    journal.append(topics(1), 1)
    whole = journal.size
    journal.append([*topics(2), e.TopicDeleted(1)], 2)
    (name,) = names(files)
    data = files.tree()[f"{PLACE}/{name}"]
    assert data
    for cut in range(whole, len(data)):
        # when only a part of it is in the file
        left = MemoryFiles()
        left.make_directory(PLACE)
        left.write(left.open(f"{PLACE}/{name}", create=True), data[:cut], 0)
        again = opened(left)
        # then the one before it is replayed, nothing is damaged, and the journal goes on
        assert list(again.replay()) == topics(1)
        assert again.disk.damages == []
        again.append(topics(3), 3)
        assert told(left) == topics(1, 3)


@pytest.mark.parametrize("at", [0, 4, 12, 39, 45, 60])
def test_damage_is_stepped_over_reported_and_healed(at: int) -> None:
    # given three blocks and a byte changed in the second
    files = MemoryFiles()
    journal = opened(files)
    journal.append(topics(1), 1)
    second = journal.size
    journal.append(topics(2), 2)
    journal.append(topics(3), 3)
    path = f"{PLACE}/{names(files)[0]}"
    fd = files.open(path)
    files.write(fd, bytes([files.read(fd, 1, second + at)[0] ^ 0x55]), second + at)
    # when it is opened
    again = opened(files)
    # then the others are replayed, the bad bytes are told of and copied aside
    state = replayed(again)
    assert sorted(state.names) == ["t1", "t3"]
    (damage,) = again.disk.damages
    assert (damage.path, damage.position, damage.first, damage.next) == (path, second, 1, 2)
    assert files.exists(damage.copy)
    # and a compaction, which it wants, leaves a journal without damage
    assert again.wants_compaction
    compact(again, state)
    healthy = opened(files)
    assert sorted(replayed(healthy).names) == ["t1", "t3"]
    assert healthy.disk.damages == []
    assert not healthy.wants_compaction


def test_bad_bytes_at_the_end_are_kept_and_the_journal_goes_on_in_another_file() -> None:
    # given a last block of which a byte is changed
    files = MemoryFiles()
    journal = opened(files)
    journal.append(topics(1), 1)
    end = journal.size
    journal.append(topics(2), 2)
    files.write(files.open(f"{PLACE}/{names(files)[0]}"), b"x", end + 50)
    # when it is opened and written to
    again = opened(files)
    again.append(topics(3), 3)
    # then the bad bytes are still there, and what was written is in a file of its own
    assert len(names(files)) == 2
    assert told(files) == topics(1, 3)


def test_a_file_that_cannot_be_read_in_places_is_read_elsewhere() -> None:
    # given a device that does not give some of the journal's bytes
    memory = MemoryFiles()
    journal = opened(memory)
    journal.append(topics(1), 1)
    journal.append(topics(*range(2, 600)), 2)
    journal.append(topics(600), 3)
    files = FailingFiles(memory)
    bad = range(4096, 8192)
    read = memory.read

    def failing(fd: int, size: int, position: int) -> bytes:
        if position < bad.stop and position + size > bad.start:
            raise OSError(errno.EIO, "no such sector")
        return read(fd, size, position)

    memory.read = failing  # type: ignore[method-assign]
    # when it is opened
    again = opened(files)
    # then the blocks beside them are replayed, and the one they are in is told of
    assert list(again.replay()) == [*topics(1), *topics(600)]
    assert len(again.disk.damages) == 1


def test_an_entry_of_a_newer_format_is_refused_with_the_file_it_stands_in() -> None:
    # given a block with an entry of a kind that nobody knows yet
    files = MemoryFiles()
    files.make_directory(PLACE)
    path = f"{PLACE}/{0:020d}.log"
    files.write(files.open(path, create=True), batch.encode(0, 1, 1, bytes([99, 0, 0, 0, 0]), SEED), 0)
    # then the replay says so
    with pytest.raises(DataPathError, match=rf"{path}: an entry of kind 99 was written by a newer Penstock"):
        list(opened(files).replay())


def test_a_block_that_holds_no_entry_is_refused_with_the_file_it_stands_in() -> None:
    files = MemoryFiles()
    files.make_directory(PLACE)
    path = f"{PLACE}/{0:020d}.log"
    files.write(files.open(path, create=True), batch.encode(0, 1, 1, b"\x01\0\0\0\x09xx", SEED), 0)
    with pytest.raises(CorruptLog, match=path):
        list(opened(files).replay())


def test_damage_done_while_the_journal_is_open_is_told_by_its_next_replay() -> None:
    files = MemoryFiles()
    journal = opened(files)
    journal.append(topics(1), 1)
    files.write(files.open(f"{PLACE}/{names(files)[0]}"), b"x", 45)
    with pytest.raises(CorruptLog, match="damaged at byte 0 since it was opened"):
        list(journal.replay())


def test_a_block_larger_than_any_start_should_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "MAX_BLOCK", 1000)
    journal = opened(MemoryFiles())
    with pytest.raises(TooLarge, match="1022 bytes"):
        journal.append([e.ProducerSeen(1, b"k" * 989, 0, b"", 0)], 1)
    assert journal.append([e.ProducerSeen(1, b"k" * 900, 0, b"", 0)], 1) == 1


def test_other_files_in_the_directory_are_left_alone() -> None:
    files = MemoryFiles()
    files.make_directory(PLACE)
    others = {f"{PLACE}/{name}" for name in ("notes.txt", "1.log", "0000000000000000000x.log")}
    for path in others:
        files.open(path, create=True)
    journal = opened(files)
    journal.append(topics(1), 1)
    compact(journal, replayed(journal))
    assert others < files.tree().keys()


# Flushing


def test_what_is_flushed_is_told_by_ordinal_and_one_flush_runs_at_a_time() -> None:
    # given a journal with a block, of which the flush is under way
    journal = opened(MemoryFiles())
    journal.append(topics(1), 1)
    work = journal.flush_work()
    assert work
    # when another one comes meanwhile
    journal.append(topics(2, 3), 2)
    assert journal.flush_work() is None
    work()
    # then only the first is flushed, and the next flush takes the other
    assert (journal.flushed, journal.end) == (1, 3)
    flush(journal)
    assert journal.flushed == 3


def test_the_first_flush_makes_the_names_sure_too() -> None:
    # given a new journal, when what it holds counts as flushed
    files = PowerCuts()
    journal = opened(files)
    journal.append(topics(1), 1)
    flush(journal)
    # then a power cut takes nothing of it
    assert files.now.doubtful == []
    assert journal.flushed == 1


def test_after_a_start_nothing_counts_as_flushed_until_it_is() -> None:
    # given a journal whose process was killed before it flushed
    files = PowerCuts()
    opened(files).append(topics(1), 1)
    left = files.now.kill()
    # when another one flushes it
    journal = opened(left)
    assert journal.flushed == 0
    flush(journal)
    # then it is on the device
    assert journal.flushed == 1
    assert left.now.doubtful == []


def test_after_a_kill_a_file_that_says_it_is_complete_counts_when_that_is_flushed_too() -> None:
    # given a process that was killed when it had written that, and a power cut that could still take it
    files = PowerCuts()
    journal = opened(files)
    journal.append(topics(1), 1)
    journal.compact(replayed(journal).slice)
    while journal.write_slice(2):
        pass
    work = journal.flush_work()
    assert work
    work()
    assert journal.flush_work()  # says it, and is not run
    left = files.now.kill()
    # then the next one counts nothing before its own flush
    again = opened(left)
    assert (again.wants_compaction, again.flushed) == (False, 0)
    flush(again)
    assert again.flushed == again.end


def test_a_file_whose_flush_failed_is_not_flushed_again() -> None:
    # given a journal with something flushed and something not, and a device that fails once
    cuts = PowerCuts()
    files = FailingFiles(cuts)
    journal = opened(files)
    journal.append(topics(1), 1)
    flush(journal)
    journal.append(topics(2), 2)
    fault = files.fail(errno.EIO, on="flush")
    work = journal.flush_work()
    assert work
    work()
    assert fault.met
    assert isinstance(journal.failed, FlushFailed)
    # when more is written, and flushed
    journal.append(topics(3), 3)
    files.calls.clear()
    flush(journal)
    # then it is in another file, only that one was flushed, and nothing counts
    old, new = names(cuts)
    assert {call.paths for call in files.calls if call.method == "flush"} == {(f"{PLACE}/{new}",)}
    assert journal.flushed == 1
    # and a compaction, which it wants, makes all of it good
    assert journal.wants_compaction
    compact(journal, replayed(journal))
    assert old not in names(cuts)
    assert journal.failed is None
    assert journal.flushed == journal.end
    for state in cuts.now.every_cut():
        assert sorted(replayed(opened(state)).names) == ["t1", "t2", "t3"]


def test_after_a_kill_a_flush_that_failed_before_it_does_not_count_as_one_that_went_well() -> None:
    # given a process that was killed when its flush had failed, and before it did anything about that
    cuts = PowerCuts()
    files = FailingFiles(cuts)
    journal = opened(files)
    journal.append(topics(1), 1)
    files.fail(errno.EIO, on="flush")
    work = journal.flush_work()
    assert work
    work.run()
    left = cuts.now.kill()
    # when the next one flushes
    again = opened(left, killed=True)
    again.append(topics(2), 2)
    flush(again)
    # then that is not enough: what it found is not on the device,
    assert again.flushed == 0
    assert any("t1" not in replayed(opened(state)).names for state in left.now.every_cut())
    # before the compaction is that it wants
    assert again.wants_compaction
    compact(again, replayed(again))
    assert again.flushed == again.end
    for state in left.now.every_cut():
        assert sorted(replayed(opened(state)).names) == ["t1", "t2"]


def test_a_flush_that_cannot_open_its_file_is_tried_again() -> None:
    # given no descriptor left
    files = FailingFiles(MemoryFiles())
    journal = Journal(Disk(files, limit=1), PLACE)
    journal.append(topics(1), 1)
    journal.disk.close_all()
    files.fail(errno.EMFILE, on="open")
    # when a flush is asked for, it fails with that
    with pytest.raises(LogError):
        journal.flush_work()
    # then the next one does not
    flush(journal)
    assert journal.flushed == 1


@pytest.mark.parametrize("fails", [False, True])
def test_a_flush_holds_its_file_open_and_lets_it_go(fails: bool) -> None:
    # given a flush that is under way
    files = FailingFiles(MemoryFiles())
    journal = opened(files)
    journal.append(topics(1), 1)
    file = journal.disk.open(f"{PLACE}/{0:020d}.log")
    work = journal.flush_work()
    assert work
    assert file.pins == 1
    # when it ends, well or not
    if fails:
        files.fail(errno.EIO, on="flush")
    work()
    # then the file may be closed
    assert file.pins == 0
    assert bool(journal.failed) is fails


# Writes that fail


@pytest.mark.parametrize(("number", "error"), [(errno.ENOSPC, DiskFull), (errno.EIO, DiskFailed)])
@pytest.mark.parametrize("written", [0, 1, 40, 60])
def test_an_append_that_fails_leaves_whole_blocks_and_works_again(
    number: int, error: type[LogError], written: int
) -> None:
    # given a journal with a block
    memory = MemoryFiles()
    files = FailingFiles(memory)
    journal = opened(files)
    journal.append(topics(1), 1)
    size, end = journal.size, journal.end
    # when the next append writes only some bytes
    files.fail(number, on="write", written=written)
    with pytest.raises(error):
        journal.append(topics(2), 2)
    # then nothing is changed, for this process and for the next
    assert (journal.size, journal.end) == (size, end)
    assert told(memory) == topics(1)
    # and the same entries can be appended again
    journal.append(topics(2), 3)
    assert told(memory) == topics(1, 2)


def test_where_not_even_cutting_works_the_journal_goes_on_in_another_file() -> None:
    # given an append that failed half-way and could not be cut off
    memory = MemoryFiles()
    files = FailingFiles(memory)
    journal = opened(files)
    journal.append(topics(1), 1)
    files.fail(errno.EIO, on="write", written=50)
    files.fail(errno.EIO, on="truncate")
    with pytest.raises(DiskFailed):
        journal.append(topics(2), 2)
    # when the same is appended again
    journal.append(topics(2), 3)
    flush(journal)
    # then it stands in another file
    assert len(names(memory)) == 2
    assert told(memory) == topics(1, 2)
    assert journal.flushed == journal.end


def test_no_room_for_a_new_file_passes() -> None:
    # given a journal that begins another file, and no room for it
    memory = MemoryFiles()
    files = FailingFiles(memory)
    journal = opened(files)
    journal.append(topics(1), 1)
    journal.compact(replayed(journal).slice)
    full = files.fail(errno.ENOSPC, on=("open", "write"), times=None)
    with pytest.raises(DiskFull):
        journal.write_slice(2)
    with pytest.raises(DiskFull):
        journal.append(topics(2), 2)
    # when there is room again
    files.heal(full)
    journal.append(topics(2), 3)
    while journal.write_slice(4):
        pass
    flush(journal)
    # then all is there
    assert sorted(replayed(opened(memory)).names) == ["t1", "t2"]
    assert len(names(memory)) == 1


# Compaction


def test_a_compaction_leaves_one_file_that_says_the_same_in_less() -> None:
    # given a journal of which most is out of date
    files = MemoryFiles()
    journal = opened(files)
    for now in range(100):
        journal.append([*topics(1), e.TopicPaused(1, now % 2 == 0)], now)
    before, size = facts(replayed(journal)), journal.size
    # when it is compacted
    compact(journal, replayed(journal))
    # then a start finds one small file, and the same in it
    assert len(names(files)) == 1
    assert facts(replayed(opened(files))) == before
    assert journal.size < size / 10
    assert journal.flushed == journal.end


def test_a_journal_on_a_real_disk_is_compacted_and_found_again(tmp_path: Path) -> None:
    # given a journal in a folder that it makes itself
    folder = str(tmp_path / "journal")
    journal = Journal(Disk(), folder)
    journal.append(topics(*range(100)), 1)
    state = replayed(journal)
    # when it is compacted, and goes on
    compact(journal, state)
    journal.append(topics(100), 2)
    # then the next process finds all of it, in one file
    again = Journal(Disk(), folder)
    assert len(replayed(again).topics) == 101
    assert len(list((tmp_path / "journal").iterdir())) == 1
    for each in (journal, again):
        each.disk.close_all()


def test_a_compaction_is_wanted_when_half_is_out_of_date_and_never_for_little() -> None:
    # given a journal that may hold 2,000 bytes before it is looked at
    files = MemoryFiles()
    journal = opened(files, floor=2000)
    while journal.size < 1900:
        journal.append(topics(1), 1)
    assert not journal.wants_compaction
    # when it has reached that, and what it says takes 10,000
    journal.append(topics(*range(300)), 2)
    assert journal.wants_compaction
    journal.compact(replayed(journal).slice)
    assert not journal.wants_compaction
    while journal.write_slice(3):
        pass
    flush(journal)
    kept = journal.size
    assert kept > 10_000
    # then it is wanted at twice the size, also by the process that comes next
    for each in (journal, opened(files, floor=2000)):
        assert not each.wants_compaction
    while journal.size < 2 * kept - 200:
        journal.append(topics(1), 4)
        assert not journal.wants_compaction
    journal.append(topics(*range(10)), 4)
    for each in (journal, opened(files, floor=2000)):
        assert each.wants_compaction


def test_what_is_appended_between_slices_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    # given a compaction in many slices
    monkeypatch.setattr(state_module, "THINGS", 1)
    files = MemoryFiles()
    journal = opened(files)
    journal.append(topics(*range(9)), 1)
    state = replayed(journal)
    journal.compact(state.slice)
    number = 0
    # when topics are deleted, and others created, after each
    while journal.write_slice(2):
        entries = [e.TopicDeleted(number), *(topics(100 + number) if number < 9 else [])]
        journal.append(entries, 3)
        state.apply_all(entries)
        number += 1
        # then a kill at that time leaves what was
        assert replayed(opened(files)).topics.keys() == state.topics.keys()
    flush(journal)
    # and so does the end
    assert number > 9
    assert replayed(opened(files)).topics.keys() == state.topics.keys()
    assert len(names(files)) == 1


def test_the_file_says_that_it_is_complete_only_when_its_slices_are_on_the_device() -> None:
    # given a compaction whose slices are all written
    files = PowerCuts()
    journal = opened(files)
    journal.append(topics(1), 1)
    journal.compact(replayed(journal).slice)
    while journal.write_slice(2):
        pass
    # when a flush takes them
    while journal.wants_flush:
        complete = any(isinstance(entry, e.Complete) for entry in opened(files).replay())
        # then only behind it the file says so, and only behind the next one the old file goes
        assert not complete or not any(" at 0," in doubt for doubt in files.now.doubtful)
        assert len(names(files)) == 2
        work = journal.flush_work()
        assert work
        work()
    assert len(names(files)) == 1
    assert files.now.doubtful == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_slice_that_cannot_be_written_is_asked_for_again_as_things_are_then(number: int) -> None:
    # given a compaction whose next slice finds no room
    memory = MemoryFiles()
    files = FailingFiles(memory)
    journal = opened(files)
    journal.append(topics(1), 1)
    state = replayed(journal)
    journal.compact(state.slice)
    files.fail(number, on="write", written=33)
    with pytest.raises(LogError):
        journal.write_slice(2)
    # when the topic is paused meanwhile
    journal.append([e.TopicPaused(1, True)], 3)
    state.apply(e.TopicPaused(1, True))
    # then the slice that is written says that it is
    while journal.write_slice(4):
        pass
    flush(journal)
    assert len(names(memory)) == 1
    topic = replayed(opened(memory)).topic("t1")
    assert topic
    assert topic.paused


def test_a_compaction_whose_file_takes_no_more_begins_again() -> None:
    # given a compaction whose file could not be cut after a failed write
    memory = MemoryFiles()
    files = FailingFiles(memory)
    journal = opened(files, floor=0)
    journal.append(topics(1), 1)
    state = replayed(journal)
    journal.compact(state.slice)
    journal.write_slice(2)
    files.fail(errno.EIO, on="write", written=33)
    files.fail(errno.EIO, on="truncate")
    with pytest.raises(DiskFailed):
        journal.append(topics(2), 3)
    # when it goes on, there is nothing left to go on with
    assert not journal.write_slice(4)
    assert journal.wants_compaction
    # then another one does it
    journal.append(topics(2), 5)
    state.apply_all(topics(2))
    compact(journal, state)
    assert len(names(memory)) == 1
    assert sorted(replayed(opened(memory)).names) == ["t1", "t2"]


def test_a_file_that_takes_no_more_never_says_that_it_is_complete() -> None:
    # given a compaction of which all slices are on the device, and a file that can take no more
    memory = MemoryFiles()
    files = FailingFiles(memory)
    journal = opened(files)
    journal.append(topics(1), 1)
    journal.compact(replayed(journal).slice)
    while journal.write_slice(2):
        pass
    work = journal.flush_work()
    assert work
    work()
    files.fail(errno.EIO, on="write", written=33)
    files.fail(errno.EIO, on="truncate")
    with pytest.raises(DiskFailed):
        journal.append(topics(2), 3)
    # when the next flush would say so
    flush(journal)
    # then it does not, here or in the file that comes behind it
    journal.append(topics(2), 4)
    assert not any(isinstance(entry, e.Complete) for entry in journal.replay())
    assert sorted(replayed(opened(memory)).names) == ["t1", "t2"]


def test_a_flush_that_ends_behind_the_end_of_its_compaction_completes_nothing() -> None:
    # given a file that says it is complete, and the flush of that under way
    memory = MemoryFiles()
    files = FailingFiles(memory)
    journal = opened(files)
    journal.append(topics(1), 1)
    state = replayed(journal)
    journal.compact(state.slice)
    while journal.write_slice(2):
        pass
    flush_slices = journal.flush_work()
    assert flush_slices
    flush_slices()
    flush_complete = journal.flush_work()
    assert flush_complete
    # when the file can take no more, and another compaction begins
    files.fail(errno.EIO, on="write", written=33)
    files.fail(errno.EIO, on="truncate")
    with pytest.raises(DiskFailed):
        journal.append(topics(2), 3)
    journal.append(topics(2), 4)
    journal.compact(state.slice)
    flush_complete()
    # then that one goes on, and no file is removed before it ends
    assert journal.wants_slice
    assert len(names(memory)) == 3
    assert sorted(replayed(journal).names) == ["t1", "t2"]


def test_files_that_could_not_be_removed_go_at_the_next_start_and_are_not_replayed() -> None:
    # given a compaction that could not remove the old file
    memory = MemoryFiles()
    files = FailingFiles(memory)
    journal = opened(files)
    journal.append(topics(1, 2), 1)
    state = replayed(journal)
    journal.append([e.TopicDeleted(2)], 2)
    state.apply(e.TopicDeleted(2))
    files.fail(errno.EIO, on="unlink")
    compact(journal, state)
    assert journal.failed is None
    assert len(names(memory)) == 2
    # when the next process starts
    again = opened(memory)
    # then it replays the complete one alone, and removes the other
    assert e.TopicDeleted(2) not in list(again.replay())
    assert sorted(replayed(again).names) == ["t1"]
    flush(again)
    assert len(names(memory)) == 1


def test_a_start_amid_a_compaction_counts_nothing_as_flushed_until_another_is_through() -> None:
    # given a process that was killed amid a compaction
    files = MemoryFiles()
    journal = opened(files)
    journal.append(topics(1), 1)
    journal.compact(replayed(journal).slice)
    journal.write_slice(2)
    # when the next one flushes what it found
    again = opened(files)
    flush(again)
    # then that is not enough: nobody knows what of the first file is on the device
    assert again.flushed == 0
    assert again.wants_compaction
    compact(again, replayed(again))
    assert again.flushed == again.end
    assert len(names(files)) == 1


# Kills, power cuts and failures at every step


class History:
    """A journal and its owner over one disk, and how things were after each block."""

    def __init__(self, seed: int, disk: PowerCuts) -> None:
        self.rng = random.Random(seed)
        self.disk = disk
        self.files = FailingFiles(disk)
        self.owner = Owner(self.rng)
        self.times = [(0, facts(self.owner.state))]  # behind which ordinal things were so
        self.marks = [(disk.step, 0, 1)]  # step of the disk, entries flushed, times so far
        self.journal = opened(self.files)
        self.work: Any = None

    def mark(self) -> None:
        self.marks.append((self.disk.step, self.journal.flushed, len(self.times)))

    def run(self, steps: int) -> None:
        self.mark()
        doing = [*[self.append] * 3, *[self.slice] * 6, *[self.flush] * 4]
        for _ in range(steps):
            self.rng.choice(doing)()
            self.mark()

    def append(self) -> None:
        entries = self.owner.act()
        try:
            self.journal.append(entries, self.owner.now)
        except LogError:
            return
        self.owner.applied(entries)
        self.times.append((self.journal.end, facts(self.owner.state)))

    def slice(self) -> None:
        if self.journal.wants_slice:
            try:
                self.journal.write_slice(self.owner.now)
            except LogError:
                return
        elif not self.journal.compacting and (self.journal.wants_compaction or self.rng.random() < 0.5):
            self.journal.compact(self.owner.state.slice)

    def flush(self) -> None:
        """Begin one, or end the one that is under way."""
        if self.work is None:
            self.work = self.journal.flush_work()
            return
        self.work()
        self.work = None

    def possible(self, step: int) -> list[Facts]:
        """How things may be when the disk stopped at this step: as flushed, or at any time since, the next included."""
        flushed = max(flushed for at, flushed, _ in self.marks if at <= step)
        until = next((count for at, _, count in self.marks if at >= step), len(self.times))
        begin = max(number for number, (end, _) in enumerate(self.times) if end <= flushed)
        return [told for _, told in self.times[begin:until]]


def assert_possible(found: NodeState, possible: list[Facts], cut: object) -> None:
    """Each single thing is as it was at one of these times."""
    assert_sound(found)
    for fact, value in facts(found).items():
        assert value in [time.get(fact) for time in possible], f"{fact} after {cut}"


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice says one thing, so that a history has many."""
    monkeypatch.setattr(state_module, "THINGS", 1)
    monkeypatch.setattr(state_module, "LIMIT", 3)


@pytest.mark.usefixtures("small_slices")
@given(st.integers(0, 2**32))
def test_a_kill_at_any_step_loses_nothing_that_was_appended(seed: int) -> None:
    # given any history of appends, slices and flushes
    history = History(seed, PowerCuts())
    history.run(70)
    # when the process is killed after any operation of the disk
    for moment in history.disk.moments():
        before = max(count for at, _, count in history.marks if at <= moment.step)
        after = next(count for at, _, count in history.marks if at >= moment.step)
        found = facts(replayed(opened(moment.kill())))
        # then what is replayed is all that was appended; with or without the block that was being written
        assert found in [told for _, told in history.times[before - 1 : after]]


@pytest.mark.usefixtures("small_slices")
@given(st.integers(0, 2**32))
def test_a_power_cut_at_any_step_loses_nothing_that_was_flushed(seed: int) -> None:
    # given any history of appends, slices and flushes
    history = History(seed, PowerCuts())
    history.run(70)
    # when the power fails after any operation of the disk
    for moment in history.disk.moments():
        for cut in moment.cuts(history.rng, 2):
            found = replayed(opened(cut))
            # then each thing is as it was when it was flushed, or as it was later
            assert_possible(found, history.possible(moment.step), cut.origin)


@pytest.mark.usefixtures("small_slices")
@given(st.integers(0, 2**32))
def test_a_power_cut_while_the_disk_fails_loses_nothing_that_was_flushed(seed: int) -> None:
    # given any history on a disk that fails now and then
    history = History(seed, PowerCuts())
    calls = ("write", "write", "flush", "flush", "flush_directory", "truncate", "unlink", "open")
    for call in history.rng.choices(calls, k=8):
        number = history.rng.choice((errno.EIO, errno.ENOSPC))
        history.files.fail(number, on=call, skip=history.rng.randrange(20), written=history.rng.randrange(40))
    _run_through(history, 70)
    # when the power fails after any operation of the disk
    for moment in history.disk.moments():
        for cut in moment.cuts(history.rng, 2):
            # then each thing is as it was when it was flushed, or as it was later
            assert_possible(replayed(opened(cut)), history.possible(moment.step), cut.origin)
    # and when it works again, a compaction makes all of it good
    history.files.heal()
    if history.work:
        history.flush()
    compact(history.journal, history.owner.state)
    assert history.journal.flushed == history.journal.end
    assert history.journal.failed is None
    for cut in history.disk.now.every_cut(20):
        assert facts(replayed(opened(cut))) == facts(history.owner.state)


def _run_through(history: History, steps: int) -> None:
    """Run, whatever the journal raises; it is ours."""
    for _ in range(steps):
        try:
            history.run(1)
        except LogError:
            history.mark()


@pytest.mark.usefixtures("small_slices")
@given(st.integers(0, 2**32))
def test_lives_that_end_in_power_cuts_follow_each_other_without_loss(seed: int) -> None:
    rng = random.Random(seed)
    disk = PowerCuts()
    told = facts(NodeState())
    for life in range(5):
        # given what the cut before left
        history = History(rng.randrange(2**32), disk)
        history.owner.state = replayed(history.journal)
        history.owner.now = 1000 * life
        assert facts(history.owner.state) == told
        history.times = [(history.journal.flushed, told)]
        history.marks = [(0, history.journal.flushed, 1)]
        history.run(70)
        # when the power fails again at some step
        moment = rng.choice(list(disk.moments()))
        cut = next(iter(moment.cuts(rng, 1)))
        # then each thing is as it was when it was flushed, or as it was later
        found = replayed(opened(cut))
        assert_possible(found, history.possible(moment.step), cut.origin)
        told = facts(found)
        disk = PowerCuts(cut)


# A million


@pytest.mark.parametrize(
    "spread", [1, pytest.param(4000, marks=pytest.mark.slow)], ids=["close", "over-four-thousand-million-offsets"]
)
def test_a_million_unfinished_messages_are_compacted_in_slices_and_replayed(spread: int) -> None:
    # given a channel with a million unfinished messages
    files = MemoryFiles()
    journal = opened(files)
    journal.append([*topics(1), e.ChannelCreated(1, 1, "c", 0, 0)], 1)
    for first in range(0, 1_000_000, 10_000):
        offsets = range(first * spread, (first + 10_000) * spread, spread)
        packed = struct.pack(">20000Q", *(number for offset in offsets for number in (offset, e.READY << 16 | 1)))
        journal.append([e.Progress(1, offsets.start, offsets.stop, b"", packed)], 2)
    state = replayed(journal)
    assert len(state.channels[1].unfinished) == 1_000_000
    # when it is compacted
    sizes: list[int] = []

    def source(mark: Any) -> tuple[Sequence[e.Entry], Any]:
        entries, mark = state.slice(mark)
        sizes.append(len(e.encode(entries)))
        return entries, mark

    journal.compact(source)
    while journal.write_slice(3):
        pass
    flush(journal)
    # then no slice was long, and all of them are there
    assert max(sizes) < 100_000
    again = replayed(opened(files))
    assert again.channels[1].cursor == state.channels[1].cursor
    assert again.channels[1].unfinished.page(0, 1 << 20) == state.channels[1].unfinished.page(0, 1 << 20)
