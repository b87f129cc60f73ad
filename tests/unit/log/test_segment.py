"""A segment: what is appended is read again, from anywhere, over any damage, whatever its index says."""

from __future__ import annotations

import contextlib
import errno
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import DiskFailed, DiskFull, LogError, TooManyFiles
from penstock.log.disk import Disk
from penstock.log.index import ENTRY, STEP
from penstock.log.segment import Segment
from penstock.protocol.batch import HEADER, RECORD, records
from tests.kit import FailingFiles, MemoryFiles
from tests.unit.log.builders import SEED, batch, content, fill, flush, new_segment, recovered, texts

ONE = HEADER + RECORD  # bytes of a batch of one record beside its body


def filled(segment: Segment, sizes: list[int], *, of: int = 1) -> list[tuple[int, bytes]]:
    """A batch of `of` records for each size; what is in it then. Times count up from 100."""
    rng = random.Random(sum(sizes))
    expected = texts(content(segment))
    for number, size in enumerate(sizes):
        bodies = [rng.randbytes(size) for _ in range(of)]
        expected += enumerate(bodies, segment.end)
        fill(segment, bodies, 100 + number)
    return expected


def small(files: MemoryFiles | FailingFiles | None = None) -> tuple[Segment, list[tuple[int, bytes]]]:
    """Five batches of two records."""
    segment = new_segment(files)
    return segment, filled(segment, [3, 50, 0, 200, 9], of=2)


def log_file(segment: Segment) -> bytes:
    return read_file(segment, segment.path)


def read_file(segment: Segment, path: str) -> bytes:
    fd = segment.disk.files.open(path)
    try:
        return segment.disk.files.read(fd, 1 << 30, 0)
    finally:
        segment.disk.files.close(fd)


def files_with(log: bytes, index: bytes | None = None) -> MemoryFiles:
    """A directory with a segment's files as somebody left them."""
    files = MemoryFiles()
    files.make_directory("/log")
    for name, data in ((".log", log), (".index", index)):
        if data is not None:
            fd = files.open(f"/log/{0:020d}{name}", create=True)
            files.write(fd, data, 0)
            files.close(fd)
    return files


def open_segment(files: MemoryFiles | FailingFiles) -> Segment:
    segment = Segment(Disk(files), "/log", 0, SEED)
    segment.recover()
    return segment


# --- appending and reading


SIZES = st.lists(st.sampled_from([0, 1, 7, 300, 5000, STEP - ONE, STEP, 3 * STEP + 1]), max_size=12)


@given(SIZES, st.integers(1, 3), st.data())
def test_what_is_appended_is_read_from_any_offset_in_blocks_of_any_size(
    sizes: list[int], of: int, draw: st.DataObject
) -> None:
    # given batches of all sizes
    segment = new_segment(first=1000)
    expected = filled(segment, sizes, of=of)
    # when a block is read
    offset = draw.draw(st.integers(1000, segment.end))
    size = draw.draw(st.sampled_from([1, 100, 1000, STEP, 1 << 20]))
    block = segment.read(offset, size)
    # then it is whole batches from the one with the offset on, one at least and else not larger than wished
    if offset == segment.end:
        assert block is None
        return
    assert block is not None
    first = offset - (offset - 1000) % of
    assert texts(list(records(block.data))) == [pair for pair in expected if first <= pair[0] < block.next]
    assert block.first == first
    assert len(block.data) <= size or block.next == first + of
    # and reading on, everything comes
    assert texts(content(segment)) == expected


def test_a_reader_that_goes_on_where_it_stopped_is_taken_there() -> None:
    # given many batches behind one mark
    files = FailingFiles(MemoryFiles())
    segment = new_segment(files)
    for number in range(200):
        fill(segment, [b"%d" % number])
    # when they are read one by one
    files.calls.clear()
    offset = 0
    while block := segment.read(offset, 1):
        assert next(iter(records(block.data))).body == b"%d" % offset
        offset = block.next
    # then each is one read
    assert sum(call.method == "read" for call in files.calls) == 200


@given(SIZES, st.integers(90, 120))
def test_a_time_leads_to_the_first_batch_appended_then_or_later(sizes: list[int], time: int) -> None:
    segment = new_segment()
    filled(segment, sizes, of=2)
    expected = next((2 * number for number in range(len(sizes)) if 100 + number >= time), segment.end)
    assert segment.at_time(time) == expected
    # and the same by an index that was made anew
    if sizes:
        assert recovered(segment).at_time(time) == expected


def test_of_batches_of_the_same_time_the_first_is_found() -> None:
    segment = new_segment()
    for time in (5, 5, 5, 8, 8):
        fill(segment, [bytes(STEP)], time)
    assert [segment.at_time(time) for time in (4, 5, 6, 8, 9)] == [0, 0, 3, 3, 5]


def test_blocks_that_were_handed_out_stay_as_they_are() -> None:
    segment, expected = small()
    block = segment.read(0, 1 << 20)
    assert block is not None
    before = bytes(block.data)
    filled(segment, [10, 10])
    assert segment.read(0, 1 << 20) != block
    assert bytes(block.data) == before
    assert texts(list(records(block.data))) == expected


# --- appends that fail


@pytest.mark.parametrize(
    ("error", "typed"), [(errno.ENOSPC, DiskFull), (errno.EDQUOT, DiskFull), (errno.EIO, DiskFailed)]
)
@pytest.mark.parametrize("written", [0, 1, 39, 40, 60])
def test_an_append_that_fails_leaves_the_file_as_it_was_and_the_next_one_works(
    error: int, typed: type[LogError], written: int
) -> None:
    # given a segment
    files = FailingFiles(MemoryFiles())
    segment, expected = small(files)
    before = log_file(segment)
    # when an append fails somewhere
    files.fail(error, on="write", written=written)
    with pytest.raises(typed, match=segment.path):
        fill(segment, [b"never there"])
    # then the file has what it had
    assert log_file(segment) == before
    assert texts(content(segment)) == expected
    # and the next one goes on behind it
    fill(segment, [b"there"])
    assert texts(content(recovered(segment))) == [*expected, (10, b"there")]


def test_a_short_write_is_carried_on() -> None:
    files = FailingFiles(MemoryFiles())
    segment, expected = small(files)
    files.shorten(7)
    files.shorten(1)
    fill(segment, [b"in pieces"])
    assert texts(content(recovered(segment))) == [*expected, (10, b"in pieces")]


@pytest.mark.parametrize("written", [1, 60])
def test_where_half_a_batch_cannot_even_be_cut_off_the_segment_takes_no_more(written: int) -> None:
    files = FailingFiles(MemoryFiles())
    segment, expected = small(files)
    files.fail(errno.EIO, on="write", written=written)
    files.fail(errno.EIO, on="truncate")
    with pytest.raises(DiskFailed):
        fill(segment, [b"never there"])
    assert segment.closed
    # then half of it is nobody's: neither now nor after a kill
    assert texts(content(segment)) == expected
    again = recovered(segment)
    assert (texts(content(again)), again.tail_bad) == (expected, False)


def test_what_a_failed_first_append_left_is_cut_before_the_next() -> None:
    # given a new segment whose first append failed and could not be cut off
    files = FailingFiles(MemoryFiles())
    segment = new_segment(files)
    files.fail(errno.EIO, on="write", written=50)
    files.fail(errno.EIO, on="truncate")
    with pytest.raises(DiskFailed):
        fill(segment, [b"longer than the next one will be"])
    # when it is tried again with less
    fill(segment, [b"x"])
    # then nothing of the first is left
    assert log_file(segment) == batch(0, [b"x"])


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENOSPC])
def test_a_file_that_cannot_be_made_is_a_typed_error_and_passes(error: int) -> None:
    files = FailingFiles(MemoryFiles())
    segment = new_segment(files)
    files.fail(error, on="open")
    with pytest.raises((TooManyFiles, DiskFull), match=segment.path):
        fill(segment, [b"x"])
    fill(segment, [b"y"])
    assert texts(content(segment)) == [(0, b"y")]


# --- recovery


def test_cut_at_any_byte_it_recovers_what_is_whole_and_goes_on() -> None:
    # given what a kill in the middle of a write can leave
    segment, expected = small()
    data = log_file(segment)
    ends = [segment.read(2 * number, 1).data.nbytes for number in range(5)]  # type: ignore[union-attr]
    for size in range(len(data) + 1):
        whole = max(number for number in range(6) if sum(ends[:number]) <= size)
        # when it is found again
        files = files_with(data[:size])
        again = open_segment(files)
        # then every whole batch is there, and no other
        assert texts(content(again)) == expected[: 2 * whole]
        assert (again.closed, again.disk.damages) == (False, [])
        assert len(log_file(again)) == again.position == sum(ends[:whole])
        # and appends go on
        fill(again, [b"more"])
        assert texts(content(open_segment(files))) == [*expected[: 2 * whole], (2 * whole, b"more")]


def test_with_any_byte_flipped_only_that_batch_is_lost_and_it_is_set_aside() -> None:
    segment, expected = small()
    data = log_file(segment)
    starts = [0]
    for number in range(5):
        starts.append(starts[-1] + segment.read(2 * number, 1).data.nbytes)  # type: ignore[union-attr]
    rng = random.Random(5)
    for at in range(len(data)):
        hurt = max(number for number in range(5) if starts[number] <= at)
        flipped = bytearray(data)
        flipped[at] ^= 1 << rng.randrange(8)
        # when a segment with one flipped bit is found
        files = files_with(bytes(flipped))
        again = open_segment(files)
        # then all else is there
        assert texts(content(again)) == [pair for pair in expected if pair[0] // 2 != hurt]
        # and the bad bytes are told of, copied, and left where they are
        (damage,) = again.disk.damages
        assert (damage.position, damage.size) == (starts[hurt], starts[hurt + 1] - starts[hurt])
        assert read_file(again, damage.copy) == bytes(flipped[starts[hurt] : starts[hurt + 1]])
        assert log_file(again) == flipped
        # and where that was the end, it is not known what stood there: no append goes on behind it
        assert again.tail_bad == again.closed == (hurt == 4)


def test_damage_that_is_met_while_reading_is_told_once_and_stepped_over() -> None:
    # given a segment that is flushed and closed
    files = MemoryFiles()
    segment = new_segment(files)
    expected = filled(segment, [10] * 20)
    segment.closed = True
    flush(segment)
    # when a batch in the middle goes bad afterwards
    again = recovered(segment)
    fd = files.open(segment.path)
    files.write(fd, b"\xff", 10 * (ONE + 10) + 50)
    # then it is missing, whenever it is read
    for _ in range(3):
        assert texts(content(again)) == [pair for pair in expected if pair[0] != 10]
        block = again.read(10, 1)
        assert block is not None
        assert block.first == 11
        again.forget_index()
    # and told of once, with the offsets it took
    assert [(d.position, d.first, d.next) for d in again.disk.damages] == [(10 * (ONE + 10), 10, 11)]
    # and not again after the next start
    third = recovered(again)
    assert texts(content(third)) == [pair for pair in expected if pair[0] != 10]
    assert third.disk.damages == []


def test_damage_whose_copy_has_no_room_is_told_of_and_copied_at_a_later_start() -> None:
    # given a damaged batch before a good one, and a full disk
    segment, _ = small()
    data = bytearray(log_file(segment))
    data[50] ^= 1
    files = files_with(bytes(data))
    for full_from in range(3):
        files.capacity = files.used + full_from * 20
        again = open_segment(files)
        assert [damage.copy for damage in again.disk.damages] == [""]
    # when there is room
    files.capacity = None
    (damage,) = open_segment(files).disk.damages
    assert len(read_file(again, damage.copy)) == damage.size


def test_the_same_damage_is_found_by_a_scan_and_by_its_index() -> None:
    # given damage that a scan found, and whose index was written
    segment, expected = small()
    data = bytearray(log_file(segment))
    data[len(batch(0, [b"123", b"123"])) + 50] ^= 1
    files = files_with(bytes(data))
    first = open_segment(files)
    flush(first)
    # when it is found again
    second = open_segment(files)
    # then it is known without a look
    assert second.index.gaps == first.index.gaps != []
    assert texts(content(second)) == texts(content(first)) == [pair for pair in expected if pair[0] // 2 != 1]


# --- its index


def long(files: MemoryFiles | FailingFiles | None = None) -> tuple[Segment, list[tuple[int, bytes]]]:
    """Some marks' worth of batches, flushed."""
    segment = new_segment(files)
    expected = filled(segment, [20_000] * 20, of=2)
    flush(segment)
    return segment, expected


def test_recovery_begins_at_the_last_mark() -> None:
    files = FailingFiles(MemoryFiles())
    segment, _ = long(files)
    assert len(segment.index) > 5
    again = recovered(segment)
    assert again.flushed == segment.index.at(-1).position
    assert again.flushed_end == segment.index.at(-1).offset
    assert (again.position, again.end, again.last_time) == (segment.position, segment.end, segment.last_time)
    assert again.index.positions == segment.index.positions


def test_a_mark_is_only_written_when_all_before_it_is_flushed() -> None:
    # given bytes of which a part is flushed, when that is noted
    segment = new_segment()
    filled(segment, [20_000] * 20, of=2)
    position = segment.index.at(3).position
    segment.write_index(segment.flushed_to(position))
    # then the index file has the marks up to there
    assert len(read_file(segment, segment.index_path)) == 4 * ENTRY
    # and the rest comes with the next flush
    flush(segment)
    assert len(read_file(segment, segment.index_path)) == len(segment.index) * ENTRY


def test_a_busy_segment_does_not_write_its_marks_with_every_flush() -> None:
    # given a segment of which the beginning was flushed while more was written
    segment = new_segment()
    filled(segment, [20_000] * 200, of=2)
    segment.write_index(segment.flushed_to(segment.index.at(3).position))
    written = read_file(segment, segment.index_path)
    # when a little more is flushed, then its marks are not worth a write
    segment.write_index(segment.flushed_to(segment.index.at(9).position))
    assert read_file(segment, segment.index_path) == written
    # and when much more is, they are
    segment.write_index(segment.flushed_to(segment.index.at(30).position))
    assert len(read_file(segment, segment.index_path)) == 31 * ENTRY


def test_a_sealed_segment_is_not_read_to_be_recovered() -> None:
    segment, expected = long()
    segment.closed = True
    flush(segment)
    files = FailingFiles(segment.disk.files)
    again = recovered(segment, files)
    assert [call.paths[0] for call in files.calls if call.method == "read"] == [segment.index_path]
    assert (again.end, again.position, again.last_time, again.closed) == (segment.end, segment.position, 119, True)
    assert again.first_time == 100
    assert not again.dirty
    assert texts(content(again)) == expected


def test_a_stop_in_order_leaves_a_mark_at_the_end() -> None:
    segment, _ = long()
    segment.mark_end()
    again = recovered(segment)
    assert again.flushed == again.position == segment.position
    # and appends and times go on as if nothing had been
    fill(again, [b"more"], 500)
    assert (again.at_time(119), again.at_time(120), again.at_time(501)) == (38, 40, 41)
    assert texts(content(recovered(again)))[-1] == (40, b"more")


def with_index(data: bytes, index: bytes | None, expected: list[tuple[int, bytes]], end: int) -> None:
    """Recover with this index file, and check that nothing depended on it."""
    files = files_with(data, index)
    segment = open_segment(files)
    assert (segment.position, segment.end, segment.disk.damages) == (len(data), end, [])
    for offset in (0, 1, end // 2, end - 1):
        block = segment.read(offset, 1)
        assert block is not None
        assert block.first <= offset < block.next
        assert texts(list(records(block.data))) == expected[block.first : block.next]
    assert segment.at_time(110) == 20
    # the next flush makes it whole again
    flush(segment)
    assert open_segment(files).end == end


def sealed_or_not(seal: bool) -> tuple[bytes, bytes, list[tuple[int, bytes]], int]:
    segment, expected = long()
    segment.closed = seal
    flush(segment)
    return log_file(segment), read_file(segment, segment.index_path), expected, segment.end


@pytest.mark.parametrize("seal", [False, True], ids=["open", "sealed"])
def test_with_any_byte_of_its_index_flipped_all_is_found(seal: bool) -> None:
    data, index, expected, end = sealed_or_not(seal)
    rng = random.Random(1)
    for at in range(len(index)):
        flipped = bytearray(index)
        flipped[at] ^= 1 << rng.randrange(8)
        with_index(data, bytes(flipped), expected, end)


@pytest.mark.parametrize("seal", [False, True], ids=["open", "sealed"])
def test_with_its_index_cut_at_any_byte_or_lost_all_is_found(seal: bool) -> None:
    data, index, expected, end = sealed_or_not(seal)
    for size in range(len(index)):
        with_index(data, index[:size], expected, end)
    with_index(data, None, expected, end)


@pytest.mark.parametrize("seal", [False, True], ids=["open", "sealed"])
def test_with_another_index_or_garbage_behind_it_all_is_found(seal: bool) -> None:
    data, index, expected, end = sealed_or_not(seal)
    other = Segment(Disk(MemoryFiles()), "/log", 7, SEED)
    other.disk.files.make_directory("/log")
    filled(other, [30_000] * 10)
    flush(other)
    others = read_file(other, other.index_path)
    for wrong in (others, index + others, others + index, index + b"\0", index + bytes(4096), b"\xff" * 100 + index):
        with_index(data, wrong, expected, end)


@pytest.mark.parametrize("on", ["open", "write", "size"])
@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENOSPC, errno.EIO])
def test_an_index_that_cannot_be_written_costs_nothing_but_a_longer_look(on: str, error: int) -> None:
    files = FailingFiles(MemoryFiles())
    segment = new_segment(files)
    expected = filled(segment, [20_000] * 20, of=2)
    fault = files.fail(error, on=on, path="*.index")
    flush(segment)
    assert fault.met
    assert texts(content(recovered(segment))) == expected
    # and it is whole again with the next flush
    fill(segment, [b"more"])
    flush(segment)
    assert len(read_file(segment, segment.index_path)) == len(segment.index) * ENTRY


def test_an_index_that_is_let_go_is_read_again_and_made_again_where_it_is_lost() -> None:
    # given a sealed segment
    segment, expected = long()
    segment.closed = True
    flush(segment)
    marks = list(segment.index.positions)
    # when its index is let go
    segment.forget_index()
    assert list(segment.index.positions) == marks
    # or lost while it is
    segment.forget_index()
    segment.disk.close(segment.index_path)
    segment.disk.files.unlink(segment.index_path)
    assert list(segment.index.positions) == marks
    assert texts(content(segment)) == expected


def test_damage_that_was_met_is_known_also_while_the_index_is_let_go() -> None:
    # given a sealed segment with a batch that went bad
    segment, expected = long()
    segment.closed = True
    flush(segment)
    fd = segment.disk.files.open(segment.path)
    segment.disk.files.write(fd, b"\xff" * 8, 400_000)
    good = content(segment)
    assert len(good) < len(expected)
    [gap] = segment.gaps
    # when its index is let go, and read again
    segment.forget_index()
    assert list(segment.gaps) == [gap]
    assert content(segment) == good
    # then it is the same damage
    assert list(segment.gaps) == [gap]


def test_an_index_that_is_not_whole_in_its_file_is_not_let_go() -> None:
    segment, _ = long()
    index = segment.index
    segment.forget_index()
    assert segment.index is index


# --- passing errors


class BadPage(FailingFiles):
    """A device with a place that it does not give."""

    bad = -1

    def read(self, fd: int, size: int, position: int) -> bytes:
        if position <= self.bad < position + size:
            raise OSError(errno.EIO, "bad page")
        return self.beneath.read(fd, size, position)


@pytest.mark.parametrize("bad", [0, 100_000, 801_300])
def test_a_page_that_cannot_be_read_now_condemns_nothing(bad: int) -> None:
    # given a segment of which the device does not give a page for a while
    segment, expected = long()
    beneath = files_with(log_file(segment))
    before = beneath.tree()
    files = BadPage(beneath)
    files.bad = bad
    # when it is recovered meanwhile
    segment = open_segment(files)
    # then somebody is told, what can be read is read, and the rest is an error
    assert [damage.copy for damage in segment.disk.damages] == [""]
    assert (segment.end, segment.closed, segment.tail_bad) == (
        (38, True, True) if bad > 800_000 else (40, False, False)
    )
    block = segment.read(20, 100)
    assert block is not None
    assert texts(list(records(block.data))) == expected[20:22]
    if not segment.closed:
        with pytest.raises(DiskFailed, match="bad page"):
            segment.read(bad // 40_000 * 2, 100)
    # and no byte is changed or cut, no index written
    flush(segment)
    assert beneath.tree() == before
    # and when the device gives it again, all is there, at once or at the next start
    files.bad = -1
    assert texts(content(segment)) == expected[: segment.end]
    again = open_segment(beneath)
    assert texts(content(again)) == expected
    assert again.disk.damages == []


@pytest.mark.parametrize("error", [errno.EIO, errno.EMFILE, errno.ENOMEM])
def test_a_read_that_fails_is_a_typed_error_and_passes(error: int) -> None:
    files = FailingFiles(MemoryFiles())
    segment, expected = long(files)
    fault = files.fail(error, on="read", times=None)
    with pytest.raises(LogError, match=segment.path):
        segment.read(3, 100)
    files.heal(fault)
    assert texts(content(segment)) == expected
    assert segment.disk.damages == []


@pytest.mark.parametrize("error", [errno.EIO, errno.EMFILE])
@pytest.mark.parametrize("on", ["open", "read"])
def test_an_index_that_cannot_be_read_again_now_is_a_typed_error_or_made_from_the_log(on: str, error: int) -> None:
    # given a sealed segment without its index in memory
    files = FailingFiles(MemoryFiles())
    segment, expected = long(files)
    segment.closed = True
    flush(segment)
    segment.forget_index()
    segment.disk.close_all()
    # when reading it fails
    fault = files.fail(error, on=on, path="*.index")
    with contextlib.suppress(LogError):
        assert segment.read(0, 1) is not None
    # then all is there afterwards
    assert fault.met
    assert texts(content(segment)) == expected
    assert segment.disk.damages == []


def test_descriptors_that_run_out_while_recovering_are_a_typed_error_and_nothing_is_changed() -> None:
    # given a segment with half a batch at its end, and no descriptor left
    files = files_with(log_file(long()[0])[:-1])
    before = files.tree()
    files.descriptors = 0
    with pytest.raises(TooManyFiles):
        open_segment(files)
    assert files.tree() == before
    # then with one it recovers, and with more it is as if nothing had been
    files.descriptors = 1
    assert len(content(open_segment(files))) == 38


# --- not waiting


def test_where_the_device_would_have_to_be_waited_for_the_caller_is_told() -> None:
    files = MemoryFiles()
    segment, expected = long(files)
    files.cold.add(segment.path)
    with pytest.raises(BlockingIOError):
        segment.read(0, 100, now=True)
    assert segment.read(0, 100) is not None
    files.cold.clear()
    block = segment.read(0, 100, now=True)
    assert block is not None
    assert texts(list(records(block.data))) == expected[:2]
    assert segment.read(segment.end, 100, now=True) is None


def test_a_reader_that_must_not_wait_does_not_look_for_good_batches_behind_bad_ones() -> None:
    segment, _ = small()
    data = bytearray(log_file(segment))
    files = files_with(bytes(data))
    again = open_segment(files)
    fd = files.open(segment.path)
    files.write(fd, b"\xff" * 8, 60)
    with pytest.raises(BlockingIOError):
        again.read(0, 100, now=True)
    assert again.disk.damages == []
    block = again.read(0, 100)
    assert block is not None
    assert block.first == 2


# --- when a newer segment takes over


def test_what_another_segment_holds_is_not_looked_at_any_more() -> None:
    # given a segment of ten batches, flushed up to the sixth
    segment = new_segment()
    expected = filled(segment, [30_000] * 10, of=2)
    size = segment.position // 10
    # when another one holds what comes from each batch on
    for cut in range(11):
        again = recovered(segment)
        again.cut_view(2 * cut)
        # then it ends there
        assert (again.end, again.position) == (2 * cut, size * cut)
        assert again.last_time == (99 + cut if cut else 0)
        assert texts(content(again)) == expected[: 2 * cut]
        assert again.at_time(1000) == 2 * cut
        assert again.flushed <= again.position


def test_damage_below_what_another_segment_holds_is_still_damage() -> None:
    # given a segment with a gap
    data = bytearray(log_file(small()[0]))
    data[50] ^= 1
    segment = open_segment(files_with(bytes(data)))
    # when another one holds what follows the gap, at once or later
    for end in (4, 2):
        segment.cut_view(end)
        assert [(gap.first, gap.next) for gap in segment.index.gaps] == [(0, 2)]
        assert [record.offset for record in content(segment)] == list(range(2, end))
