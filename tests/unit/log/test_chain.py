"""A chain of segments: rolls at the exact byte, reads across them, and deletes from the front."""

from __future__ import annotations

import errno
import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import DiskFailed, DiskFull, LogError, TooManyFiles
from penstock.log.chain import Chain, Hole, unlink_steps
from penstock.log.disk import Disk
from penstock.log.files import Files
from penstock.log.index import STEP
from penstock.log.work import Work
from penstock.protocol.batch import HEADER, RECORD, Record, records
from tests.kit import FailingFiles, MemoryFiles
from tests.unit.log.builders import SEED, batch, texts

ONE = HEADER + RECORD  # bytes of a batch of one record beside its body


def chain_in(files: Files, max_bytes: int = 1000, *, limit: int = 512, earliest: int | None = None) -> Chain:
    """A new one, or with `earliest` the one that is there."""
    chain = Chain(Disk(files, limit=limit), "/log", SEED, max_bytes)
    if earliest is None:
        files.make_directory("/log")
    else:
        chain.recover(earliest)
    return chain


def put(chain: Chain, *bodies: bytes, time: int = 0) -> int:
    """One batch, behind the last one."""
    first = chain.segments[-1].end if chain.segments else 0
    chain.append(batch(first, list(bodies), time), first, len(bodies), time)
    return first


def flush(chain: Chain) -> None:
    work = Work()
    chain.flush(work)
    work()
    if work.error:
        raise work.error


def read_all(chain: Chain, offset: int = 0, size: int = 1) -> list[Record]:
    found: list[Record] = []
    while block := chain.read(offset, size):
        found += [record for record in records(block.data) if record.offset >= offset]
        offset = block.next
    return found


def names(chain: Chain, suffix: str = ".log") -> list[int]:
    """The first offsets of the files that there are."""
    return sorted(int(name[:20]) for name, _ in chain.disk.files.list("/log") if name.endswith(suffix))


def sizes(chain: Chain) -> list[int]:
    return [segment.position for segment in chain.segments]


# --- rolling


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_a_segment_is_closed_exactly_where_the_next_batch_would_not_fit(over: int) -> None:
    # given a segment with room for 300 bytes
    chain = chain_in(MemoryFiles(), 1000)
    put(chain, bytes(700 - ONE))
    # when a batch of one less, as much, or one more comes
    put(chain, bytes(300 + over - ONE))
    # then only one that is larger goes to the next
    assert sizes(chain) == ([700, 301] if over > 0 else [1000 + over])
    # and after that there is no room for any
    put(chain, b"")
    assert sizes(chain) == ([700, 301 + ONE] if over > 0 else [1000 + over, ONE])
    assert [segment.first for segment in chain.segments] == names(chain)
    assert [segment.closed for segment in chain.segments] == [True, False]


@pytest.mark.parametrize("over", [-1, 0, 1])
@pytest.mark.parametrize("reopened", [False, True], ids=["running", "reopened"])
def test_a_reader_at_the_end_of_a_segment_that_rolls_misses_nothing_and_no_file_is_touched(
    over: int, reopened: bool
) -> None:
    # given a reader that has read a segment to its end, when the next batch makes it roll, or nearly
    files = MemoryFiles()
    chain = chain_in(files, 1000)
    put(chain, bytes(700 - ONE))
    assert chain.read(0, 1 << 20) is not None
    assert chain.read(1, 1 << 20) is None
    before = files.tree()
    # when it rolls under the reader
    for body in (bytes(300 + over - ONE), b"next", b"and on" * 100):
        if reopened:
            chain = chain_in(files, 1000, earliest=0)
        offset = put(chain, body)
        # then the reader goes on with what came
        assert texts(read_all(chain, offset)) == [(offset, body)]
        assert chain.read(offset + 1, 1) is None
    # and every file that was there begins as it did: nothing is renamed or written anew
    after = files.tree()
    assert all((after[path] or b"").startswith(data) for path, data in before.items() if data)


def test_a_batch_larger_than_a_segment_has_one_of_its_own() -> None:
    chain = chain_in(MemoryFiles(), 100)
    for size in (1, 5000, 1, 99, 7):
        put(chain, bytes(size))
    assert sizes(chain) == [ONE + 1, ONE + 5000, ONE + 1, ONE + 99, ONE + 7]
    assert [len(record.body) for record in read_all(chain)] == [1, 5000, 1, 99, 7]


@given(st.lists(st.integers(0, 400), min_size=1, max_size=30), st.integers(1, 600), st.sampled_from([1, 500, 1 << 20]))
def test_what_is_appended_is_read_from_anywhere_across_segments_and_after_a_kill(
    lengths: list[int], max_bytes: int, size: int
) -> None:
    # given batches over many segments
    files = MemoryFiles()
    chain = chain_in(files, max_bytes)
    rng = random.Random(len(lengths))
    bodies = [rng.randbytes(length) for length in lengths]
    for body in bodies:
        put(chain, body)
    expected = list(enumerate(bodies))
    # then no segment is larger than it may be, unless it is one batch
    assert all(s.position <= max_bytes or s.end == s.first + 1 for s in chain.segments)
    # and all is read, from everywhere
    again = chain_in(files, max_bytes, earliest=0)
    for offset in {0, len(bodies) // 2, len(bodies) - 1}:
        assert texts(read_all(chain, offset, size)) == texts(read_all(again, offset, size)) == expected[offset:]
    assert again.bytes == chain.bytes == sum(ONE + length for length in lengths)


# --- appends that fail


@pytest.mark.parametrize("on", ["open", "write"])
def test_a_roll_that_fails_changes_nothing_and_works_when_there_is_room(on: str) -> None:
    # given a full segment
    files = FailingFiles(MemoryFiles())
    chain = chain_in(files, 100)
    put(chain, bytes(60))
    # when the next one cannot be made
    files.fail(errno.ENOSPC, on=on, path=f"*{1:020d}.log", written=30)
    for _ in range(2):
        fault = files.fail(errno.ENOSPC, on=on, path=f"*{1:020d}.log")
        with pytest.raises(DiskFull):
            put(chain, bytes(60))
        files.heal(fault)
        assert (len(chain.segments), texts(read_all(chain))) == (1, [(0, bytes(60))])
    # then it is made when there is room, and the same batch is there once
    put(chain, b"x")
    for found in (chain, chain_in(files, 100, earliest=0)):
        assert texts(read_all(found)) == [(0, bytes(60)), (1, b"x")]


def test_a_smaller_batch_after_a_roll_that_failed_is_not_hidden_by_the_file_that_the_roll_left() -> None:
    # given a segment with room left, and a batch too large for that which could not be written to a new file
    files = FailingFiles(MemoryFiles())
    chain = chain_in(files, 300)
    put(chain, b"one")
    files.fail(errno.EIO, on="write")
    with pytest.raises(DiskFailed):
        put(chain, b"x" * 300)
    # when a smaller one follows and the process is killed
    put(chain, b"two")
    again = chain_in(files, 300, earliest=0)
    # then it is there
    assert texts(read_all(again)) == [(0, b"one"), (1, b"two")]


def test_where_half_a_batch_cannot_be_cut_off_the_next_goes_to_a_new_segment() -> None:
    # given a segment with half a batch at its end that cannot be cut
    files = FailingFiles(MemoryFiles())
    chain = chain_in(files)
    put(chain, b"one")
    files.fail(errno.EIO, on="write", written=60)
    files.fail(errno.EIO, on="truncate")
    with pytest.raises(DiskFailed):
        put(chain, b"never there")
    # when the next comes
    put(chain, b"two")
    put(chain, b"three")
    # then it stands in a new one
    assert names(chain) == [0, 1]
    for found in (chain, chain_in(files, earliest=0)):
        assert texts(read_all(found)) == [(0, b"one"), (1, b"two"), (2, b"three")]
        assert found.disk.damages == []


def test_a_batch_that_was_written_whole_before_its_error_is_not_read_beside_the_one_that_took_its_place() -> None:
    # given an append that failed after its last byte, and could not be cut off
    files = FailingFiles(MemoryFiles())
    chain = chain_in(files)
    put(chain, b"one")
    files.fail(errno.EIO, on="write", written=1 << 20)
    files.fail(errno.EIO, on="truncate")
    with pytest.raises(DiskFailed):
        put(chain, b"told as failed", b"and its second")
    # when another took its offsets
    put(chain, b"two")
    # then the newer file is right
    again = chain_in(files, earliest=0)
    assert texts(read_all(again)) == [(0, b"one"), (1, b"two")]
    # and so it is after any flush
    flush(again)
    put(again, b"three")
    assert texts(read_all(chain_in(files, earliest=0))) == [(0, b"one"), (1, b"two"), (2, b"three")]


# --- flushing


def test_a_flush_takes_all_that_is_dirty_oldest_first_and_the_directory_last() -> None:
    files = FailingFiles(MemoryFiles())
    chain = chain_in(files, 100)
    for _ in range(3):
        put(chain, bytes(60))
    work = Work()
    chain.flush(work)
    files.calls.clear()
    work.run()
    assert [call.paths[0] for call in files.calls] == [*(f"/log/{first:020d}.log" for first in range(3)), "/log"]
    # and what is appended meanwhile is not taken for flushed
    put(chain, b"")
    put(chain, b"")
    work.finish()
    assert [segment.first for segment in chain.dirty()] == [3, 4]
    # and there is nothing to do when there is nothing
    flush(chain)
    again = Work()
    chain.flush(again)
    assert not again


def test_every_closed_segment_is_sealed_when_it_is_flushed_before_or_after_it_rolls() -> None:
    files = MemoryFiles()
    chain = chain_in(files, 100)
    put(chain, bytes(60))
    flush(chain)
    for _ in range(3):
        put(chain, bytes(60))
    flush(chain)
    # then no old one is read again to be recovered
    watched = FailingFiles(files)
    again = chain_in(watched, 100, earliest=0)
    assert [call.paths[0] for call in watched.calls if call.method == "read" and call.paths[0].endswith(".log")] == [
        f"/log/{3:020d}.log"
    ]
    assert len(read_all(again)) == 4


def test_the_indexes_of_few_closed_segments_are_kept_in_memory() -> None:
    chain = chain_in(MemoryFiles(), 100)
    for _ in range(30):
        put(chain, bytes(60))
        flush(chain)
    assert len(read_all(chain)) == 30
    assert list(chain.holes(0, 30)) == []
    assert sum(segment._index is not None for segment in chain.segments) <= 6


def test_a_flush_that_cannot_begin_holds_no_file() -> None:
    # given two dirty segments of which one cannot be opened, because descriptors ran out
    files = FailingFiles(MemoryFiles())
    chain = chain_in(files, 100)
    put(chain, bytes(60))
    put(chain, bytes(60))
    chain.disk.close(chain.segments[1].path)
    fault = files.fail(errno.EMFILE, on="open", times=None)
    with pytest.raises(TooManyFiles):
        flush(chain)
    # then nothing is pinned, and it works when there are some
    assert chain.segments[0].open().pins == 0
    files.heal(fault)
    flush(chain)
    assert chain.dirty() == []


def test_a_directory_that_was_not_flushed_is_flushed_again() -> None:
    files = FailingFiles(MemoryFiles())
    chain = chain_in(files)
    put(chain, b"one")
    files.fail(errno.EIO, on="flush_directory")
    with pytest.raises(OSError, match="Input/output"):
        flush(chain)
    files.calls.clear()
    flush(chain)
    assert ("flush_directory", ("/log",)) in files.calls


# --- deleting


def four() -> tuple[MemoryFiles, Chain]:
    """Four segments of two batches."""
    files = MemoryFiles()
    chain = chain_in(files, 2 * ONE)
    for _ in range(8):
        put(chain, b"")
    return files, chain


@pytest.mark.parametrize(
    ("below", "kept"),
    [(0, [0, 2, 4, 6]), (1, [0, 2, 4, 6]), (2, [2, 4, 6]), (3, [2, 4, 6]), (6, [6]), (8, [6]), (99, [6])],
)
def test_only_whole_segments_below_the_offset_go_and_never_the_last(below: int, kept: list[int]) -> None:
    files, chain = four()
    dropped = chain.drop(below)
    assert [segment.first for segment in chain.segments] == kept
    assert chain.first(8) == kept[0]
    assert texts(read_all(chain)) == [(offset, b"") for offset in range(kept[0], 8)]
    # and their files go when the work is done
    work = Work()
    unlink_steps(work, chain.disk, dropped)
    assert len(names(chain)) == 4
    work()
    assert names(chain) == kept
    assert texts(read_all(chain_in(files, 2 * ONE, earliest=0))) == texts(read_all(chain))


@pytest.mark.parametrize("earliest", range(9))
def test_what_was_to_be_deleted_before_a_kill_is_deleted_at_the_next_start(earliest: int) -> None:
    files, _ = four()
    again = chain_in(files, 2 * ONE, earliest=earliest)
    assert (
        names(again)
        == [s.first for s in again.segments]
        == [first for first in (0, 2, 4, 6) if first + 2 > earliest or first == 6]
    )


def test_files_that_cannot_be_deleted_do_not_keep_a_log_from_starting() -> None:
    files, _ = four()
    failing = FailingFiles(files)
    fault = failing.fail(errno.EPERM, on="unlink", times=None)
    again = chain_in(failing, 2 * ONE, earliest=4)
    assert fault.met
    assert texts(read_all(again)) == [(offset, b"") for offset in range(4, 8)]


def test_a_file_is_deleted_while_a_reader_has_it_open() -> None:
    files, chain = four()
    block = chain.read(0, 1)
    file = chain.segments[0].open()
    file.pins += 1
    work = Work()
    unlink_steps(work, chain.disk, chain.drop(2))
    work()
    # then the bytes are there for who has them, and the descriptor goes with its last user
    assert files.size(file.fd) == 2 * ONE
    file.pins -= 1
    chain.close()
    assert files.opened() == []
    assert block is not None
    assert len(list(records(block.data))) == 1


# --- what is in the directory


@pytest.mark.parametrize(
    "name",
    [
        "99999999999999999999.log",
        f"{2**63:020d}.log",
        "²²²²²²²²²²²²²²²²²²²².log",
        "0000000000000000001x.log",
        "1.log",
        "00000000000000000001.log.partial",
        "00000000000000000001.rescue",
        "000000000000000000001.log",
        "-0000000000000000001.log",
        "+0000000000000000001.log",
        "1_000000000000000000.log",
        ".log",
    ],
)
def test_a_file_of_another_name_is_no_segment(name: str) -> None:
    files = MemoryFiles()
    chain = chain_in(files)
    put(chain, b"one")
    files.close(files.open(f"/log/{name}", create=True))
    files.make_directory("/log/00000000000000000005.log")
    assert texts(read_all(chain_in(files, earliest=0))) == [(0, b"one")]


def test_a_directory_that_cannot_be_listed_is_a_typed_error() -> None:
    files = FailingFiles(four()[0])
    files.fail(errno.EMFILE, on="list")
    with pytest.raises(LogError, match="/log"):
        chain_in(files, earliest=0)


def test_many_segments_need_few_descriptors() -> None:
    # given more segments than descriptors
    files = MemoryFiles()
    files.descriptors = 8
    chain = chain_in(files, ONE, limit=6)
    for _ in range(50):
        put(chain, b"")
    assert len(read_all(chain)) == 50
    # when all are to be flushed, a few at a time
    while chain.dirty():
        work = Work()
        expected = min(chain.dirty()[0].first + 4, 50)
        assert chain.flush(work, 50, at_most=4) == expected
        work()
        assert work.error is None
        assert chain.flushed_end(50) == expected
    # then it was enough to have those open
    assert len(chain.disk) <= 6
    again = chain_in(files, ONE, limit=1, earliest=0)
    assert len(read_all(again)) == 50


# --- holes


def test_holes_are_what_lies_between_segments_and_what_damage_took() -> None:
    # given segments [0, 2), [5, 7), [7, 9), of which the second has a damaged batch before a good one
    files = MemoryFiles()
    chain = chain_in(files, 2 * ONE)
    for first in (0, 1, 5, 6, 7, 8):
        chain.append(batch(first, [b""]), first, 1, 0)
    fd = files.open(f"/log/{5:020d}.log")
    files.write(fd, b"\xff", 50)
    # when it is opened again
    again = chain_in(files, 2 * ONE, earliest=0)
    # then both are known
    assert list(again.holes(0, 9)) == [Hole(2, 5, "lost"), Hole(5, 6, "damaged")]
    # and each part of them
    for first, end in itertools.combinations(range(12), 2):
        missing = [o for hole in again.holes(first, end) for o in range(hole.first, hole.next)]
        assert missing == [o for o in range(first, end) if o in {2, 3, 4, 5, 9, 10, 11}]
    # and readers step over them
    assert [record.offset for record in read_all(again)] == [0, 1, 6, 7, 8]
    assert [record.offset for record in read_all(again, 3)] == [6, 7, 8]


# --- by bytes


@pytest.mark.parametrize("let_go", [False, True])
def test_so_many_bytes_behind_an_offset_lies_the_beginning_of_a_batch(let_go: bool) -> None:
    # given batches of several sizes in several segments, and a hole
    files, sizes = MemoryFiles(), random.Random(1)
    chain = chain_in(files, 500_000)
    begins, at = [], 0
    for number in range(150):
        first = number + 10 * (number >= 70)
        data = batch(first, [b"m" * sizes.randrange(30_000)], 0)
        begins.append((at, first))
        chain.append(data, first, 1, 0)
        at += len(data)
    flush(chain)
    if let_go:
        chain = chain_in(files, 500_000, earliest=0)
    # when it is asked how far bytes reach from any batch
    for begin, offset in begins:
        for size in (0, 1, 60_000, 200_000, 700_000, 1_500_000):
            reached = chain.reach(offset, size, 160)
            # then it is a batch, not behind so many bytes, and about two steps of the index before them at most
            until = at if reached == 160 else next(at for at, first in begins if first == reached)
            assert until <= begin + size
            assert reached == offset or until >= min(begin + size, at) - 2 * (STEP + 30_000)


# --- by time


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20), st.integers(0, 40))
def test_a_time_leads_to_the_first_batch_appended_then_or_later(steps: list[int], time: int) -> None:
    files = MemoryFiles()
    chain = chain_in(files, 3 * ONE)
    times = list(itertools.accumulate(steps))
    for when in times:
        put(chain, b"", time=when)
    expected = next((offset for offset, when in enumerate(times) if when >= time), None)
    assert chain.at_time(time) == expected
    assert chain_in(files, 3 * ONE, earliest=0).at_time(time) == expected


# --- warming


def test_a_cold_read_is_warmed_on_a_thread_with_its_file_held() -> None:
    files = FailingFiles(MemoryFiles())
    chain = chain_in(files, 2 * ONE)
    for _ in range(8):
        put(chain, b"")
    for offset in (0, 3, 7, 99):
        work = Work()
        chain.warm(work, offset, 100)
        file = chain.segments[min(offset // 2, 3)].open()
        assert file.pins == 1
        chain.close()
        files.calls.clear()
        work.run()
        assert [call.method for call in files.calls] == ["read"]
        work.finish()
        assert file.pins == 0
    # and an empty chain has nothing to warm
    work = Work()
    Chain(chain.disk, "/none", SEED, 100).warm(work, 0, 100)
    assert not work
