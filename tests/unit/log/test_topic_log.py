"""A topic's log: what is appended is read, from the tail and from the disk, up to what may be answered."""

from __future__ import annotations

import errno
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import DiskFull, NotRetained, Refused, TooLarge
from penstock.log import birth as birth_file
from penstock.log import topic_log
from penstock.log.birth import RESERVE
from penstock.log.chain import Hole
from penstock.log.tail import LARGEST
from penstock.log.topic_log import TopicLog
from penstock.protocol.batch import HEADER, KEYED, RECORD, header, records
from tests.kit import FailingFiles, MemoryFiles
from tests.unit.log.builders import DIRECTORY, flush_log, new_log, open_log, read_all, texts

ONE = HEADER + RECORD  # bytes of a batch of one record beside its body


def framed(bodies: list[bytes]) -> bytes:
    return b"".join(struct.pack(">I", len(body)) + body for body in bodies)


def append(log: TopicLog, count: int, *, size: int = 10, time: int = 0) -> list[tuple[int, bytes]]:
    """So many batches of one record; what is in them."""
    return [(log.append([b"%*d" % (size, log.end)], time), b"%*d" % (size, log.end - 1)) for _ in range(count)]


def memory(log: TopicLog) -> MemoryFiles:
    """The files that it lies in."""
    files = log.disk.files
    files = files.beneath if isinstance(files, FailingFiles) else files
    assert isinstance(files, MemoryFiles)
    return files


def forget(log: TopicLog) -> TopicLog:
    """Its tail is read from the disk from now on."""
    log.relax()
    return log


# --- appending and reading


def test_an_append_is_one_batch_and_answers_its_first_offset() -> None:
    log = new_log()
    assert [log.append([b"a", b"b"], 5), log.append([], 6), log.append([b"c"], 7)] == [0, 2, 2]
    assert (log.earliest, log.end, log.committed, log.flushed) == (0, 3, 3, 0)
    for found in (log, forget(log)):
        assert texts(read_all(found)) == [(0, b"a"), (1, b"b"), (2, b"c")]
        block = found.read(1)
        assert block is not None
        assert (block.first, block.next, header(block.data)[:5]) == (0, 3, (0, 2, 5, 0, b""))
    assert log.read(3) is None
    assert log.read(1 << 62) is None


def test_several_puts_of_several_kinds_are_one_batch_under_its_key() -> None:
    log = new_log()
    data = b"MPUB" + framed([b"two", b""]) + b"next"
    log.put([b"zero", b"one"], 5)
    log.put_framed(data, 4, len(data) - 4, 2, 6)
    assert (log.end, log.read(0)) == (0, None)
    assert log.write(7, flags=KEYED, key=b"producer 3") == 0
    for found in (log, open_log(log.disk.files)):
        block = found.read(0)
        assert block is not None
        assert header(block.data)[:5] == (0, 4, 7, KEYED, b"producer 3")
        assert texts(list(records(block.data))) == list(enumerate([b"zero", b"one", b"two", b""]))
        assert [record.timestamp for record in records(block.data)] == [5, 5, 6, 6]
    assert [each.key for each in open_log(log.disk.files).keyed] == [b"producer 3"]


def test_times_never_run_backwards_not_even_over_a_restart() -> None:
    log = new_log(max_bytes_per_file=ONE)
    for time in (5, 3, 9, 1):
        log.append([b""], time)
    again = open_log(log.disk.files)
    again.append([b""], 2)
    assert [header(block.data).appended for block in map(again.read, range(5)) if block] == [5, 5, 9, 9, 9]
    assert [again.at_time(time) for time in (0, 5, 6, 9, 10)] == [0, 0, 2, 2, 5]


def test_a_segment_that_holds_nothing_does_not_make_times_run_backwards() -> None:
    # given a log whose last segment was begun by an append that a kill broke off
    log = new_log(max_bytes_per_file=ONE)
    log.append([b""], 9)
    log.append([b""], 9)
    fd = log.disk.files.open(f"{DIRECTORY}/{1:020d}.log")
    log.disk.files.truncate(fd, 50)
    # then the next batch is not older than those that are there
    again = open_log(log.disk.files)
    again.append([b""], 3)
    block = again.read(1)
    assert block is not None
    assert header(block.data).appended == 9


@pytest.mark.parametrize("size", [0, 1, 4000, LARGEST - 1000, LARGEST + 1, 3 * LARGEST])
def test_a_batch_may_be_larger_than_the_tail_and_than_a_segment(size: int) -> None:
    log = new_log(max_bytes_per_file=LARGEST)
    expected = append(log, 3)
    expected.append((log.append([bytes(size)], 0), bytes(size)))
    expected += append(log, 3)
    for found in (log, forget(log), open_log(log.disk.files)):
        for at in range(7):
            assert texts(read_all(found, at, 1)) == expected[at:]


def test_more_than_a_batch_can_hold_is_refused_in_one_put_or_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_log, "PAYLOAD", 1000)
    log = new_log()
    with pytest.raises(TooLarge, match="orders: 1001 bytes"):
        log.put([bytes(1001 - RECORD)], 0)
    with pytest.raises(TooLarge):
        log.put_framed(b"", 0, 0, 1 << 40, 0)
    # given a part of a batch
    log.put([bytes(600)], 0)
    # when the rest does not fit
    with pytest.raises(TooLarge):
        log.put_framed(framed([bytes(400)]), 0, 404, 1, 0)
    # then what was put before is written, and may be up to the limit
    log.put([bytes(1000 - 600 - 2 * RECORD)], 0)
    log.write(0)
    assert [len(record.body) for record in read_all(log)] == [600, 340]


def test_bodies_that_cannot_be_put_leave_the_batch_as_it_was() -> None:
    log = new_log()
    log.put([b"one"], 0)
    for data, count in ((b"\0\0\0\5abc", 1), (framed([b"abc"]), 2), (b"\xff\xff\xff\xff", 1)):
        with pytest.raises(ValueError, match="early"):
            log.put_framed(data, 0, len(data), count, 0)
    log.append([b"two"], 0)
    assert texts(read_all(log)) == [(0, b"one"), (1, b"two")]


def test_an_idle_log_lets_go_of_its_memory_but_not_of_what_was_put() -> None:
    log = new_log()
    append(log, 3)
    assert log.tail.size
    log.relax()
    assert log.tail.size == 0
    log.put([b"pending"], 0)
    log.relax()
    log.write(0)
    assert texts(read_all(log))[3:] == [(3, b"pending")]


def test_blocks_that_were_handed_out_stay_as_they_are_while_the_log_goes_on() -> None:
    # given blocks from the tail and from the disk
    log = new_log(max_bytes_per_file=2000)
    append(log, 20)
    handed = [block for offset in range(20) if (block := log.read(offset, 200))]
    forget(log)
    handed += [block for offset in range(20) if (block := log.read(offset, 200))]
    before = [bytes(block.data) for block in handed]
    # when it is appended to, rolled, flushed, deleted from
    append(log, 3000, size=300)
    flush_log(log)
    log.delete_below(10)
    flush_log(log)
    append(log, 100)
    # then they are as they were
    assert [bytes(block.data) for block in handed] == before


@given(st.lists(st.integers(1, 4), min_size=1, max_size=12), st.integers(0, 50), st.sampled_from([1, 150, 1 << 20]))
def test_the_tail_and_the_disk_give_the_same(counts: list[int], offset: int, size: int) -> None:
    log = new_log(max_bytes_per_file=400)
    for count in counts:
        log.append([b"%d" % number for number in range(count)], 0)
    from_tail = texts(read_all(log, offset, size))
    assert texts(read_all(forget(log), offset, size)) == from_tail
    assert [pair[0] for pair in from_tail] == list(range(offset, sum(counts)))


# --- what may be answered


def test_with_every_batch_flushed_nothing_is_read_before_it_is() -> None:
    log = new_log(sync_every=1)
    for number in range(4):
        log.append([b"a", b"b"], number)
        assert (log.committed, log.flushed, log.end) == (2 * number, 2 * number, 2 * number + 2)
        for found in (log, forget(log)):
            # neither alone nor behind what is
            assert len(read_all(found)) == 2 * number
            assert len(read_all(found, 0, 1)) == 2 * number
        assert log.at_time(number) == 2 * number
        flush_log(log)
        assert (log.committed, len(read_all(log))) == (2 * number + 2, 2 * number + 2)


def test_a_flush_takes_all_that_waits_and_only_one_is_under_way() -> None:
    log = new_log(sync_every=1)
    log.append([b"a"], 0)
    first = log.work()
    assert first is not None
    # when more comes while a thread flushes
    log.append([b"b"], 0)
    log.append([b"c"], 0)
    assert log.work() is None
    first.run()
    assert log.committed == 0
    first.finish()
    # then only what was there is answered, and the next takes all the rest
    assert log.committed == 1
    second = log.work()
    assert second is not None
    second()
    assert log.committed == 3
    assert log.work() is None


def test_a_roll_flushes_the_old_segment_before_the_new_one_counts() -> None:
    files = FailingFiles(MemoryFiles())
    log = new_log(files, max_bytes_per_file=ONE, sync_every=1)
    append(log, 3, size=0)
    files.calls.clear()
    flush_log(log)
    flushes = [call.paths[0].rpartition("/")[2] for call in files.calls if call.method == "flush"]
    assert flushes == ["topic.json.partial", *(f"{first:020d}.log" for first in range(3))]
    assert log.committed == 3


def test_a_flush_is_due_when_so_many_wait() -> None:
    log = new_log(sync_every=3)
    flush_log(log)
    assert not log.flush_due
    append(log, 2)
    assert not log.flush_due
    append(log, 1)
    assert log.flush_due
    flush_log(log)
    assert not log.flush_due


def test_a_new_log_is_flushed_with_its_name_and_its_directory() -> None:
    files = FailingFiles(MemoryFiles())
    log = new_log(files)
    assert log.birth_waits
    files.calls.clear()
    flush_log(log)
    flushed = [call.paths[0] for call in files.calls if call.method.startswith("flush")]
    assert flushed == [f"{DIRECTORY}/topic.json.partial", DIRECTORY, "/topics"]
    assert not log.birth_waits


# --- offsets are reserved ahead


def test_offsets_are_reserved_before_they_are_given_out() -> None:
    # given a log at the end of what it reserved
    log = new_log()
    flush_log(log)
    log.birth = log.birth._replace(reserved=2)
    log.append([b"a", b"b"], 0)
    assert birth_file.read(log.disk.files, DIRECTORY).reserved == RESERVE
    # when one more is appended
    log.append([b"c"], 0)
    # then more are reserved, and that is on the device
    assert log.birth.reserved == birth_file.read(log.disk.files, DIRECTORY).reserved == 3 + RESERVE


def test_a_flush_reserves_well_before_the_end_is_reached() -> None:
    log = new_log()
    flush_log(log)
    log.birth = log.birth._replace(reserved=RESERVE // 2)
    flush_log(log)
    assert log.birth.reserved == RESERVE // 2
    append(log, 1)
    flush_log(log)
    assert log.birth.reserved == birth_file.read(log.disk.files, DIRECTORY).reserved == 1 + RESERVE


def test_where_offsets_cannot_be_reserved_nothing_is_appended() -> None:
    files = FailingFiles(MemoryFiles())
    log = new_log(files)
    flush_log(log)
    log.birth = log.birth._replace(reserved=1)
    files.fail(errno.ENOSPC, on="write", path="*topic.json*")
    log.append([b"a"], 0)
    with pytest.raises(DiskFull):
        log.append([b"b"], 0)
    # nor while a flush is under way that may write the same file
    work = log.work()
    with pytest.raises(Refused):
        log.append([b"b"], 0)
    assert texts(read_all(log)) == [(0, b"a")]
    assert work is not None
    work()
    assert log.append([b"c"], 0) == 1


# --- times and holes


def test_a_time_beyond_the_last_leads_to_the_end() -> None:
    log = new_log()
    assert log.at_time(0) == 0
    append(log, 3, time=5)
    assert [log.at_time(time) for time in (0, 5, 6)] == [0, 0, 3]


def test_what_was_emptied_is_read_by_nobody_and_told_as_a_hole() -> None:
    # given batches of one, of which several ranges are emptied, in any order
    log = new_log(max_bytes_per_file=3 * ONE)
    for _ in range(20):
        log.append([b""], 0)
    for first, next_ in ((12, 15), (3, 5), (5, 6), (18, 20)):
        log.add_hole(Hole(first, next_, "emptied"))
    gone = {3, 4, 5, 12, 13, 14, 18, 19}
    # then readers pass over them, wherever they begin and however much they take
    for found in (log, forget(log)):
        for size in (1, 300, 1 << 20):
            for start in range(20):
                seen = [record.offset for record in read_all(found, start, size)]
                assert seen == [offset for offset in range(start, 20) if offset not in gone]
    # and each part of them is told
    for first in range(20):
        for end in range(first, 21):
            missing = [o for hole in log.holes(first, end) for o in range(max(hole.first, first), min(hole.next, end))]
            assert missing == [offset for offset in range(first, end) if offset in gone]


def test_a_hole_that_begins_within_a_batch_takes_nothing_from_what_is_before_it() -> None:
    log = new_log()
    log.append([b"0", b"1", b"2"], 0)
    log.append([b"3"], 0)
    log.append([b"4"], 0)
    log.add_hole(Hole(1, 4, "emptied"))
    offset, seen = 0, []
    while block := log.read(offset):
        seen += [record.offset for record in records(block.data) if record.offset >= offset]
        offset = block.next
    assert seen == [0, 1, 2, 4]


def test_what_was_emptied_behind_what_was_lost_is_not_given_either() -> None:
    # given a log that lost some offsets in a power cut, and was emptied right behind them
    log = new_log()
    log.append([b"0"], 0)
    log = open_log(log.disk.files, after_power_cut=True)
    first = log.append([b"emptied"], 0)
    log.append([b"there"], 0)
    log.add_hole(Hole(first, first + 1, "emptied"))
    # then a read from anywhere among the lost passes over both
    for found in (log, forget(log)):
        assert [record.offset for record in read_all(found)] == [0, first + 1]
        assert [record.offset for record in read_all(found, 5)] == [first + 1]


def test_an_append_that_failed_leaves_no_file_open() -> None:
    files = FailingFiles(MemoryFiles())
    log = new_log(files)
    for on in ("write", "truncate"):
        files.fail(errno.ENOSPC, on=on, path="*.log")
    with pytest.raises(DiskFull):
        log.append([b"a"], 0)
    assert memory(log).opened() == []
    assert log.append([b"b"], 0) == 0


def test_no_hole_is_told_beyond_the_end() -> None:
    log = new_log()
    assert log.holes(0, 100) == []
    append(log, 3)
    assert log.holes(0, 100) == []
    assert log.holes(2, 100) == []


# --- deleting and holding


def five(files: FailingFiles | MemoryFiles | None = None, *, sync_every: int = 2500) -> TopicLog:
    """Five segments of two batches, flushed, read from the disk."""
    log = new_log(files, max_bytes_per_file=2 * (ONE + 10), sync_every=sync_every)
    append(log, 10)
    flush_log(log)
    return forget(log)


def log_files(log: TopicLog) -> list[int]:
    return sorted(int(name[:20]) for name, _ in log.disk.files.list(DIRECTORY) if name.endswith(".log"))


@pytest.mark.parametrize(("below", "first"), [(0, 0), (1, 0), (2, 2), (5, 4), (8, 8), (10, 8), (99, 8)])
def test_whole_segments_below_an_offset_go_with_the_next_work(below: int, first: int) -> None:
    log = five()
    log.delete_below(below)
    flush_log(log)
    for found in (log, open_log(log.disk.files, max_bytes_per_file=2 * (ONE + 10))):
        assert (found.earliest, log_files(found)) == (first, list(range(first, 10, 2)))
        assert [record.offset for record in read_all(found)] == list(range(first, 10))
        assert found.holes(0, 10) == []
    assert not [path for path in memory(log).opened() if path < f"{DIRECTORY}/{first:020d}"]
    # and the log goes on
    log.append([b"more"], 0)
    assert read_all(log)[-1].offset == 10


def test_an_offset_that_is_not_kept_leads_to_the_first_that_is_or_is_told() -> None:
    log = five()
    log.delete_below(4)
    flush_log(log)
    block = log.read(1)
    assert block is not None
    assert block.first == 4
    # and where nothing is kept at all
    fresh = new_log(birth=log.birth._replace(name="other", resume=50, earliest=50))
    fresh.end = 60
    with pytest.raises(NotRetained, match="7 is not kept") as caught:
        fresh.read(7)
    assert caught.value.earliest == 50


def test_what_is_held_is_read_below_the_earliest_until_it_is_not_wanted() -> None:
    # given a log of which some records are held when their segments go
    log = five()
    log.hold([5, 1, 2, 1], 3)
    log.delete_below(6)
    flush_log(log)
    for found in (log, open_log(log.disk.files, max_bytes_per_file=2 * (ONE + 10))):
        # then they are read where they were, and all that is behind them
        assert (found.earliest, log_files(found)) == (6, [6, 8])
        assert texts(read_all(found)) == [(at, b"%10d" % at) for at in (1, 2, 5, 6, 7, 8, 9)]
        assert texts(read_all(found, 3, 1)) == [(at, b"%10d" % at) for at in (5, 6, 7, 8, 9)]
        # and some of them on their own
        found.held.keep([2])
        assert [record.offset for record in read_all(found)] == [2, 6, 7, 8, 9]
    # and their files go with the last
    log.held.keep([])
    flush_log(log)
    assert list(log.disk.files.list(f"{DIRECTORY}/held")) == []
    assert [record.offset for record in read_all(log)] == [6, 7, 8, 9]


def test_what_cannot_be_found_is_not_held() -> None:
    log = five()
    log.add_hole(Hole(4, 6, "emptied"))
    log.hold([4, 5, 6, 77], 3)
    assert len(log.held) == 1


def test_what_is_deleted_is_not_read_from_memory_either() -> None:
    # given a log whose end is in memory, more of it than its last segment has
    log = five()
    # when its segments but the last are deleted
    log.delete_below(9)
    flush_log(log)
    # then nobody reads what they held
    assert log.earliest == 8
    assert [record.offset for record in read_all(log)] == [8, 9]


def test_what_is_held_and_emptied_later_stays_a_hole_when_its_segment_goes() -> None:
    log = five()
    log.hold([0, 1, 5], 3)
    log.add_hole(Hole(0, 2, "emptied"))
    log.delete_below(6)
    flush_log(log)
    assert [record.offset for record in read_all(log)] == [5, 6, 7, 8, 9]


def test_what_a_kill_left_unflushed_is_held_as_well() -> None:
    # given a log whose batches count as committed when they are flushed, killed before that
    killed = new_log(max_bytes_per_file=2 * (ONE + 10))
    append(killed, 10)
    log = open_log(killed.disk.files, max_bytes_per_file=2 * (ONE + 10), sync_every=1)
    assert log.committed == 0
    # when some of what was recovered is held, and its segments go
    log.hold([1, 2], 3)
    log.delete_below(6)
    flush_log(log)
    # then it is there
    assert log_files(log) == [6, 8]
    assert [record.offset for record in read_all(log)] == [1, 2, 6, 7, 8, 9]


def test_what_is_held_and_what_is_gone_is_safe_in_that_order() -> None:
    # given a log with something to hold and to delete
    files = FailingFiles(MemoryFiles())
    log = five(files)
    log.hold([1], 3)
    log.delete_below(4)
    files.calls.clear()
    flush_log(log)
    # then the copy is flushed with all its names, before the first file goes
    calls = [(call.method, call.paths[-1].removeprefix(DIRECTORY)) for call in files.calls]
    order = [
        ("flush", f"/held/{0:020d}.log"),
        ("flush_directory", "/held"),
        ("flush_directory", ""),
        ("flush", "/topic.json.partial"),
        ("flush_directory", ""),
        ("unlink", f"/{0:020d}.log"),
        ("unlink", f"/{2:020d}.log"),
    ]
    assert [call for call in calls if call in order] == order


def test_a_deletion_that_fails_is_tried_again_and_holds_up_no_flush() -> None:
    files = FailingFiles(MemoryFiles())
    log = five(files, sync_every=1)
    fault = files.fail(errno.EPERM, on="unlink", times=None)
    log.delete_below(4)
    for _ in range(3):
        log.append([b"more"], 0)
        for _ in range(4):
            if work := log.work():
                work()
        assert log.committed == log.end
    files.heal(fault)
    flush_log(log)
    assert log_files(log) == [4, 6, 8, 10, 12]


def test_a_log_closes_though_its_files_cannot_be_deleted() -> None:
    files = FailingFiles(MemoryFiles())
    log = five(files)
    files.fail(errno.EPERM, on="unlink", times=None)
    log.delete_below(4)
    log.close()
    assert memory(log).opened() == []


def test_on_a_full_disk_what_may_go_goes() -> None:
    # given a disk without room for a single byte
    files = MemoryFiles()
    log = five(files)
    files.capacity = files.used
    # when segments may go
    log.delete_below(6)
    for _ in range(6):
        if work := log.work():
            work()
    # then there is room, and appends work again
    assert log_files(log) == [6, 8]
    assert log.append([b"more"], 0) == 10


def test_on_a_full_disk_what_is_held_is_read_where_topic_json_does_not_say_yet_that_the_rest_is_gone() -> None:
    # given a disk without room for topic.json
    files = FailingFiles(MemoryFiles())
    log = five(files)
    fault = files.fail(errno.ENOSPC, on="write", path="*/topic.json*", times=None)
    # when segments go of which some records are held
    log.hold([1, 2, 5], 3)
    log.delete_below(6)
    for _ in range(3):
        if work := log.work():
            work()
    assert fault.met
    assert (log.earliest, log_files(log)) == (0, [6, 8])
    # then those are there, also after a kill, and only what is not is a hole
    for found in (forget(log), open_log(files.beneath, max_bytes_per_file=2 * (ONE + 10))):
        assert [record.offset for record in read_all(found)] == [1, 2, 5, 6, 7, 8, 9]
        assert [(hole.first, hole.next) for hole in found.holes(0, 10)] == [(0, 1), (3, 5)]


def test_a_log_that_is_deleted_while_its_files_are_open_lets_go_of_all() -> None:
    log = five()
    log.hold([1], 0)
    log.delete_below(4)
    append(log, 3)
    log.close_files()
    assert len(log.disk) == 0


# --- closing


def test_a_log_that_was_closed_is_opened_without_reading_it() -> None:
    beneath = MemoryFiles()
    log = new_log(beneath, max_bytes_per_file=500_000)
    append(log, 100, size=10_000)
    log.close()
    assert beneath.opened() == []
    files = FailingFiles(beneath)
    again = open_log(files, max_bytes_per_file=500_000)
    assert [call for call in files.calls if call.method == "read" and call.paths[0].endswith(".log")] == []
    assert (again.end, again.flushed) == (100, 100)
    assert len(read_all(again)) == 100


def test_a_log_that_was_closed_and_never_appended_to_is_opened() -> None:
    log = new_log()
    log.close()
    again = open_log(log.disk.files)
    assert (again.end, again.earliest, again.read(0)) == (0, 0, None)
    assert again.append([b"x"], 0) == 0


def test_what_is_held_is_flushed_when_the_log_is_closed() -> None:
    files = FailingFiles(MemoryFiles())
    log = five(files)
    log.hold([1], 0)
    log.close()
    flushed = [call.paths[0] for call in files.calls if call.method == "flush"]
    assert f"{DIRECTORY}/held/{0:020d}.log" in flushed


# --- not waiting


def test_a_cold_read_is_refused_warmed_and_then_given() -> None:
    files = MemoryFiles()
    log = five(files)
    files.cold = {f"{DIRECTORY}/{first:020d}.log" for first in range(0, 10, 2)}
    with pytest.raises(BlockingIOError):
        log.read(3, now=True)
    work = log.warm(3)
    work()
    files.cold.clear()
    block = log.read(3, now=True)
    assert block is not None
    assert block.first == 3
    # and what is in the tail is never cold
    log.append([b"tail"], 0)
    files.cold = {f"{DIRECTORY}/{8:020d}.log"}
    assert log.read(10, now=True) is not None


# --- descriptors


def test_many_topics_need_few_descriptors() -> None:
    # given more topics than descriptors, on one disk
    files = MemoryFiles()
    files.make_directory("/topics")
    first = new_log(files, limit=20)
    files.descriptors = 24
    logs = [first]
    for number in range(200):
        birth = birth_file.born(f"topic{number}")
        logs.append(TopicLog.create(first.disk, f"/topics/{birth.folder}", birth))
    # when all are written, read, flushed
    for round_ in range(3):
        for log in logs:
            log.append([b"%d" % round_], 0)
        for log in logs:
            assert len(read_all(forget(log))) == round_ + 1
    for log in logs:
        flush_log(log)
        assert log.flushed == 3
    # then there were never more
    assert len(files.opened()) <= 24
    for log in logs:
        log.close()
    assert files.opened() == []
