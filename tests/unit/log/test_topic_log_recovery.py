"""A topic's log found again: after a kill, a power cut, with damage anywhere, with its small file lost."""

from __future__ import annotations

import errno
import json
import random
import zlib

import pytest

from penstock.errors import CorruptLog, DataPathError, DiskFailed
from penstock.log import birth as birth_file
from penstock.log.birth import RESERVE
from penstock.log.chain import Hole
from penstock.log.topic_log import TopicLog
from penstock.protocol.batch import HEADER, RECORD, header
from tests.kit import FailingFiles, MemoryFiles
from tests.unit.log.builders import BIRTH, DIRECTORY, flush_log, new_log, open_log, read_all, texts

Pairs = list[tuple[int, bytes]]


def filled(batches: int = 60, *, max_bytes_per_file: int = 100 << 20, sync_every: int = 2500) -> tuple[TopicLog, Pairs]:
    """A log of batches of one to three records of all small sizes."""
    log = new_log(max_bytes_per_file=max_bytes_per_file, sync_every=sync_every)
    rng = random.Random(batches)
    expected: Pairs = []
    for number in range(batches):
        bodies = [rng.randbytes(rng.choice([0, 1, 7, 60, 200])) for _ in range(rng.randint(1, 3))]
        expected += enumerate(bodies, log.append(bodies, number))
    return log, expected


def files_of(log: TopicLog) -> MemoryFiles:
    files = log.disk.files
    assert isinstance(files, MemoryFiles)
    return files


def memory_of(files: FailingFiles) -> MemoryFiles:
    assert isinstance(files.beneath, MemoryFiles)
    return files.beneath


def segment_paths(files: MemoryFiles) -> list[str]:
    return [path for path in files.tree() if path.startswith(DIRECTORY) and path.endswith(".log")]


def patched(files: MemoryFiles, path: str, at: int, data: bytes) -> MemoryFiles:
    """A copy with other bytes in one file."""
    copy = files.copy()
    fd = copy.open(path)
    copy.write(fd, data, at)
    copy.close(fd)
    return copy


def batch_ends(log: TopicLog) -> list[tuple[int, int]]:
    """(position, offset) behind each batch of a log of one segment."""
    data = files_of(log).tree()[segment_paths(files_of(log))[0]] or b""
    ends, at = [(0, 0)], 0
    while at < len(data):
        head = header(data, at)
        at = head.end
        ends.append((at, head.next))
    return ends


# --- a kill


def test_a_kill_takes_nothing_that_was_appended() -> None:
    log, expected = filled(300, max_bytes_per_file=3000)
    again = open_log(files_of(log), max_bytes_per_file=3000)
    assert (again.end, again.committed, again.birth) == (log.end, log.end, log.birth)
    assert texts(read_all(again)) == expected
    assert again.last_time == 299
    assert again.append([b"more"], 0) == len(expected)


@pytest.mark.parametrize("flushed", [False, True])
def test_cut_at_any_byte_of_the_last_4_kib_it_has_what_is_whole_and_goes_on(flushed: bool) -> None:
    # given a log that is flushed up to somewhere before its last 4 KiB
    log, expected = filled(60)
    if flushed:
        flush_log(log)
        rng = random.Random(1)
        for _ in range(40):
            body = rng.randbytes(rng.randint(0, 200))
            expected.append((log.append([body], 100), body))
    path = segment_paths(files_of(log))[0]
    ends = batch_ends(log)
    size = ends[-1][0]
    assert size > 2 * 4096
    whole = dict(ends)
    at, offset = 0, 0
    for cut in range(size + 1):
        offset = whole.get(cut, offset)
        if cut < size - 4096:
            continue
        # when a kill broke off its last write there
        files = files_of(log).copy()
        fd = files.open(path)
        files.truncate(fd, cut)
        found = open_log(files)
        # then it ends behind the last whole batch, there is no damage, and it goes on from there
        assert (found.end, found.disk.damages) == (offset, [])
        assert found.append([b"more"], 200) == offset
        if cut % 97 == 0 or cut in whole:
            assert texts(read_all(found)) == texts(read_all(open_log(files))) == [*expected[:offset], (offset, b"more")]
        at += 1
    assert at == 4097


@pytest.mark.slow
def test_cut_at_any_byte_of_the_last_4_kib_everything_is_read_each_time() -> None:
    log, expected = filled(60)
    path = segment_paths(files_of(log))[0]
    ends = batch_ends(log)
    for cut in range(ends[-1][0] - 4096, ends[-1][0] + 1):
        files = files_of(log).copy()
        fd = files.open(path)
        files.truncate(fd, cut)
        offset = max(offset for position, offset in ends if position <= cut)
        found = open_log(files)
        found.append([b"more"], 200)
        assert texts(read_all(found)) == texts(read_all(open_log(files))) == [*expected[:offset], (offset, b"more")]


def test_a_kill_takes_nothing_that_was_appended_where_an_append_had_failed_before() -> None:
    # given a log whose first append failed and left an empty file, as the next process finds it
    files = FailingFiles(MemoryFiles())
    new_log(files)
    fd = files.open(f"{DIRECTORY}/{0:020d}.log", create=True)
    files.close(fd)
    log = open_log(files)
    # when that file is ended before anything stands in it, and is then used
    log.chain.roll()
    flush_log(log)
    log.append([b"answered"], 0)
    # then it is there
    assert texts(read_all(open_log(files))) == [(0, b"answered")]


def test_a_batch_that_failed_and_could_not_be_cut_off_names_nothing_that_comes_after_it() -> None:
    # given an append that says it failed, though all its bytes are there
    files = FailingFiles(MemoryFiles())
    log = new_log(files)
    log.append([b"first"], 0)
    size = HEADER + RECORD + len(b"unknown")
    files.fail(errno.EIO, on="write", path="*.log", written=size)
    files.fail(errno.EIO, on="truncate", path="*.log")
    with pytest.raises(DiskFailed):
        log.append([b"unknown"], 0)
    # then it is not there, and after a kill it may be, since nobody was told that it is not
    assert texts(read_all(log)) == [(0, b"first")]
    assert texts(read_all(open_log(memory_of(files).copy()))) == [(0, b"first"), (1, b"unknown")]
    # when another takes its place
    log.append([b"second"], 0)
    # then it is there for good
    for again in (open_log(files), open_log(files)):
        assert texts(read_all(again)) == [(0, b"first"), (1, b"second")]


# --- damage


def check_damaged(files: MemoryFiles, expected: Pairs, hurt: range, at_end: bool) -> None:
    """Open a log of which one batch is damaged; all else must be there, now and later."""
    found = open_log(files)
    left = [pair for pair in expected if pair[0] not in hurt]
    assert texts(read_all(found)) == left
    assert len(found.disk.damages) == 1
    # what is lost is told
    lost = {offset for hole in found.holes(0, len(expected)) for offset in range(hole.first, hole.next)}
    assert lost == set(hurt)
    # no offset that anyone may have seen is given out again
    first = found.append([b"more"], 0)
    assert first >= RESERVE if at_end else first == len(expected)
    # and after one more kill it is the same, and not told again
    again = open_log(files)
    assert texts(read_all(again)) == [*left, (first, b"more")]
    assert again.disk.damages == []
    assert again.append([b"and more"], 0) == first + 1


@pytest.mark.parametrize("state", ["never flushed", "flushed", "closed"])
def test_with_any_bit_flipped_only_that_batch_is_lost(state: str) -> None:
    # given a log in one of its states
    log, expected = filled(12)
    if state == "flushed":
        flush_log(log)
    if state == "closed":
        log.close()
    ends = batch_ends(log)
    path = segment_paths(files_of(log))[0]
    data = files_of(log).tree()[path] or b""
    rng = random.Random(7)
    for at in range(len(data)):
        # each byte of each header, and every seventh of the rest
        number = max(n for n, (position, _) in enumerate(ends) if position <= at)
        if at - ends[number][0] >= HEADER + RECORD and at % 7:
            continue
        files = patched(files_of(log), path, at, bytes([data[at] ^ (1 << rng.randrange(8))]))
        hurt = range(ends[number][1], ends[number + 1][1])
        if state == "never flushed":
            check_damaged(files, expected, hurt, at_end=number == len(ends) - 2)
        else:
            # a mark in the index says that what is before it is whole: the damage is met when it is read
            found = open_log(files)
            assert texts(read_all(found)) == [pair for pair in expected if pair[0] not in hurt]
            assert len(found.disk.damages) == 1


# --- files that are shorter than they were, or gone


def shortened(files: MemoryFiles, path: str, size: int) -> None:
    fd = files.open(path)
    files.truncate(fd, size)
    files.close(fd)


@pytest.mark.parametrize("how", ["inside a batch", "behind a batch", "to nothing", "and its index is left"])
def test_a_log_whose_flushed_end_is_gone_goes_on_where_nobody_saw_an_offset_and_says_what_is_lost(how: str) -> None:
    # given a log of some files that was stopped in order
    log, expected = filled(60, max_bytes_per_file=3000)
    log.close()
    files, path = files_of(log), segment_paths(files_of(log))[-1]
    data, first = files.tree()[path] or b"", int(path[-24:-4])
    second = header(data, header(data, 0).end)
    # when the last one loses its end, or is lost
    cut, kept = {"inside a batch": (second.end + 9, second.next), "behind a batch": (second.end, second.next)}.get(
        how, (0, first)
    )
    shortened(files, path, cut)
    if how == "and its index is left":
        files.unlink(path)
    found = open_log(files, max_bytes_per_file=3000)
    # then all else is there, and what is lost is told; of what was the beginning of a batch a copy is kept
    (damage,) = found.disk.damages
    assert (damage.first, damage.next) == (kept, len(expected))
    assert texts(read_all(found)) == expected[:kept]
    assert len(files.tree()[path] or b"") == cut
    assert found.append([b"more"], 100) == found.birth.resume >= RESERVE
    # and later starts find the same, and have nothing to tell
    for _ in range(2):
        again = open_log(files, max_bytes_per_file=3000)
        assert texts(read_all(again)) == [*expected[:kept], (found.birth.resume, b"more")]
        assert (again.end, again.disk.damages) == (found.end, [])
        flush_log(again)


@pytest.mark.parametrize("number", [0, 1])
def test_a_file_that_is_gone_from_the_front_or_the_middle_is_told_of(number: int) -> None:
    log, expected = filled(60, max_bytes_per_file=3000)
    log.close()
    files = files_of(log)
    first, next_ = (int(path[-24:-4]) for path in segment_paths(files)[number : number + 2])
    files.unlink(segment_paths(files)[number])
    found = open_log(files, max_bytes_per_file=3000)
    assert texts(read_all(found)) == expected[:first] + expected[next_:]
    assert [(damage.first, damage.next) for damage in found.disk.damages] == [(first, next_)]
    assert found.append([b"more"], 100) == len(expected)


def test_what_is_deleted_and_where_a_power_cut_was_is_not_told_as_lost() -> None:
    # given a log that went on behind a power cut, and whose first files were deleted
    log, _ = filled(60, max_bytes_per_file=3000)
    flush_log(log)
    log = open_log(files_of(log), after_power_cut=True, max_bytes_per_file=3000)
    log.append([b"more"], 100)
    log.delete_below(40)
    flush_log(log)
    assert log.earliest > 0
    # then a start has nothing to tell
    assert open_log(files_of(log), max_bytes_per_file=3000).disk.damages == []


@pytest.mark.slow
def test_with_several_stretches_of_noise_all_that_is_whole_is_there() -> None:
    log, expected = filled(300, max_bytes_per_file=5000)
    flush_log(log)
    rng = random.Random(11)
    for _ in range(500):
        files = files_of(log).copy()
        hurt: set[int] = set()
        for _ in range(rng.randint(1, 5)):
            path = rng.choice(segment_paths(files))
            data = files.tree()[path] or b""
            at = rng.randrange(len(data))
            noise = rng.randbytes(rng.randint(1, 500))[: len(data) - at]
            place = 0
            while place < len(data):
                head = header(data, place) if data == (files_of(log).tree()[path] or b"") else None
                if head is None:
                    break
                if place < at + len(noise) and head.end > at:
                    hurt |= set(range(head.first, head.next))
                place = head.end
            else:
                fd = files.open(path)
                files.write(fd, noise, at)
                files.close(fd)
        found = open_log(files, max_bytes_per_file=5000)
        assert texts(read_all(found)) == [pair for pair in expected if pair[0] not in hurt]
        again = open_log(files, max_bytes_per_file=5000)
        assert texts(read_all(again)) == texts(read_all(found))


def test_a_last_batch_that_went_bad_is_copied_kept_and_never_written_over() -> None:
    log, expected = filled(5)
    path = segment_paths(files_of(log))[0]
    (start, first), (end, _) = batch_ends(log)[-2:]
    files = patched(files_of(log), path, end - 1, b"\xff")
    bad = files.tree()[path] or b""
    found = open_log(files)
    # then its bytes are where they were, and beside that
    (damage,) = found.disk.damages
    assert (damage.path, damage.position, damage.size, damage.first) == (path, start, end - start, first)
    assert files.tree()[damage.copy] == bad[start:]
    resumed = found.end
    assert resumed >= RESERVE
    for _ in range(3):
        found.append([b"more"], 0)
        flush_log(found)
        found.close()
        found = open_log(files)
    assert files.tree()[path] == bad
    assert texts(read_all(found)) == [*expected[:first], *((resumed + n, b"more") for n in range(3))]
    assert found.holes(0, found.end) == [Hole(first, resumed, "lost")]


# --- a power cut


def test_after_a_power_cut_it_goes_on_where_no_offset_was_ever_given_out() -> None:
    log, expected = filled(10)
    found = open_log(files_of(log), after_power_cut=True)
    resumed = found.end
    assert log.birth.reserved <= resumed == found.birth.resume < found.birth.reserved
    assert birth_file.read(files_of(log), DIRECTORY) == found.birth
    # then what is there is read, and what lies between is told
    assert texts(read_all(found)) == expected
    assert found.read(len(expected)) is None
    assert found.holes(0, resumed) == [Hole(len(expected), resumed, "lost")]
    assert found.append([b"more"], 0) == resumed
    assert texts(read_all(found, len(expected))) == [(resumed, b"more")]
    # and after a kill it is the same, and after another cut it is beyond that
    again = open_log(files_of(log))
    assert texts(read_all(again)) == [*expected, (resumed, b"more")]
    assert open_log(files_of(log), after_power_cut=True).end >= found.birth.reserved


def test_after_many_power_cuts_in_a_row_it_is_still_whole() -> None:
    log, expected = filled(10, sync_every=1)
    flush_log(log)
    files = files_of(log)
    reserved = log.birth.reserved
    for _ in range(5):
        found = open_log(files, after_power_cut=True, sync_every=1)
        flush_log(found)
        assert found.end == found.committed >= reserved
        assert texts(read_all(found)) == expected
        assert found.work() is None
        reserved = found.birth.reserved


def test_with_nothing_to_flush_after_a_jump_the_flush_is_not_due_for_ever() -> None:
    log, _ = filled(3)
    log.close()
    found = open_log(files_of(log), after_power_cut=True)
    flush_log(found)
    assert (found.flushed, found.flush_due) == (found.end, False)


# --- topic.json


def held_and_deleted() -> tuple[TopicLog, Pairs]:
    """A log with a front that is gone, two records of it held."""
    log, expected = filled(60, max_bytes_per_file=2000)
    flush_log(log)
    first = log.chain.segments[2].first
    log.hold([1, 3], 0)
    log.delete_below(first)
    flush_log(log)
    return log, [pair for pair in expected if pair[0] >= first or pair[0] in (1, 3)]


def test_with_its_small_file_lost_or_damaged_the_segments_say_nearly_all_of_it() -> None:
    # given a log of which topic.json is lost, cut, or flipped anywhere
    log, expected = held_and_deleted()
    files = files_of(log)
    text = files.tree()[f"{DIRECTORY}/topic.json"] or b""
    rng = random.Random(3)
    broken: list[bytes | None] = [None, b"{", b"[]", b"null", b"7", b"\xff" * 9, b"{}", b"[" * 100_000]
    broken += [text[:size] for size in range(0, len(text) - 1, 5)]
    for at in range(len(text) - 1):
        flipped = bytearray(text)
        flipped[at] ^= 1 << rng.randrange(7)
        broken.append(bytes(flipped))
    for data in broken:
        files = files_of(log).copy()
        files.unlink(f"{DIRECTORY}/topic.json")
        if data is not None:
            fd = files.open(f"{DIRECTORY}/topic.json", create=True)
            files.write(fd, data, 0)
        # when it is opened
        found = open_log(files, max_bytes_per_file=2000)
        # then all is there under its ids, what was held too, and it goes on beyond any bound that it may have had
        assert (found.birth.base, found.birth.folder, found.earliest) == (BIRTH.base, BIRTH.folder, log.earliest)
        assert found.end >= log.birth.reserved
        assert texts(read_all(found)) == expected
        first = found.append([b"more"], 0)
        assert first == found.birth.resume
        # and the next start finds a whole one
        again = open_log(files, max_bytes_per_file=2000)
        assert (again.birth.base, again.birth.resume) == (BIRTH.base, first)
        assert texts(read_all(again)) == [*expected, (first, b"more")]


def test_with_nothing_but_its_folder_it_begins_under_other_ids() -> None:
    files = MemoryFiles()
    files.make_directory("/topics")
    files.make_directory(DIRECTORY)
    found = open_log(files)
    assert (found.birth.name, found.birth.incarnation) == (BIRTH.name, BIRTH.incarnation)
    assert found.birth.base not in (0, BIRTH.base)
    assert found.append([b"x"], 0) == found.birth.resume > 0


def test_a_small_file_that_cannot_be_read_now_is_not_taken_for_a_damaged_one() -> None:
    log, expected = filled(5)
    before = files_of(log).tree()
    files = FailingFiles(files_of(log))
    for on in ("open", "read"):
        files.fail(5, on=on, path="*topic.json")
        with pytest.raises(DiskFailed, match="opening"):
            open_log(files)
        assert files_of(log).tree() == before
    assert texts(read_all(open_log(files))) == expected


@pytest.mark.parametrize("more", [{}, {"shape": "unknown to us"}], ids=["the same fields", "other fields"])
def test_a_newer_format_is_refused_and_left_alone(more: dict[str, str]) -> None:
    log, _ = filled(5)
    files = files_of(log)
    fields = {**json.loads(files.tree()[f"{DIRECTORY}/topic.json"] or b""), "format": 2, **more}
    del fields["crc"]
    fields["crc"] = zlib.crc32(json.dumps(fields, sort_keys=True).encode())
    fd = files.open(f"{DIRECTORY}/topic.json", truncate=True)
    files.write(fd, json.dumps(fields, sort_keys=True).encode(), 0)
    before = files.tree()
    with pytest.raises(DataPathError, match="newer Penstock"):
        open_log(files)
    assert files.tree() == before


def test_the_small_file_of_another_topic_is_not_its_own() -> None:
    log, expected = filled(5)
    files = files_of(log)
    birth_file.write(files, DIRECTORY, BIRTH._replace(name="another", base=77))
    found = open_log(files)
    assert found.birth.base == BIRTH.base
    assert texts(read_all(found)) == expected


def test_a_folder_that_is_no_topic_s_is_told() -> None:
    files = MemoryFiles()
    files.make_directory("/no-topic")
    with pytest.raises(CorruptLog, match="no topic's folder"):
        TopicLog.open(new_log(files).disk, "/no-topic")
