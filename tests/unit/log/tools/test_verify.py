"""Verifying: every damage is told, what is no damage is not, and nothing is touched."""

from __future__ import annotations

import errno

import pytest

from penstock.errors import DataPathError, NoLogThere
from penstock.log import birth
from penstock.log import entries as e
from penstock.log.birth import RESERVE
from penstock.log.chain import Hole
from penstock.log.index import GAP, MARK, SEAL, Gap, encode_entry, seed_of_index
from penstock.log.tools.verify import Report, StoreReport, verify
from tests.kit import Call, FailingFiles, MemoryFiles
from tests.unit.log.tools.node import (
    PATH,
    SECOND,
    START,
    content,
    defer,
    fill,
    flush,
    overwrite,
    put_file,
    segment_paths,
    start,
    timetable_of,
    write_journal,
)


def store(report: Report, kind: str = "log") -> StoreReport:
    (found,) = [each for each in report.stores if each.store.kind == kind]
    return found


def gaps(report: StoreReport) -> list[Gap]:
    return [gap for file in report.files for gap in file.gaps]


def test_a_healthy_node_is_clean_and_everything_of_it_is_counted() -> None:
    # given a running node with messages in a log, some held, some deferred, and a journal
    files = MemoryFiles()
    node = start(files)
    log = node.create("orders")
    fill(log, 40)
    log.hold([3, 4], START)
    flush(log)
    defer(timetable_of(log), [b"later", b"still later"], START + 10**12)
    write_journal(node, [e.TopicCreated(0, "orders", log.birth.incarnation)])
    before = files.tree()
    # when it is verified
    report = verify(files, PATH)
    # then all of it is counted, nothing is damaged, and nothing has changed
    assert report.clean
    assert {each.store.kind: each.records for each in report.stores} == {
        "log": 40,
        "held": 2,
        "timetable": 2,
        "journal": 1,
    }
    assert store(report).bytes == log.bytes
    assert [(file.first, file.next) for file in store(report).files] == [
        (segment.first, segment.end) for segment in log.chain.segments
    ]
    assert store(report).files[0].first_time == START + 10**9
    assert store(report).files[-1].last_time == log.last_time
    assert files.tree() == before


def test_a_node_that_never_flushed_and_one_that_stopped_in_order_are_clean() -> None:
    files = MemoryFiles()
    node = start(files)
    fill(node.create("orders"), 40)
    assert verify(files, PATH).clean
    node.close()
    assert verify(files, PATH).clean


def test_verifying_opens_nothing_for_writing() -> None:
    # given files that refuse whatever would change them
    files = MemoryFiles()
    fill(start(files).create("orders"), 20)
    looking = FailingFiles(files)
    changing = ("write", "truncate", "rename", "unlink", "make_directory", "remove_directory", "lock_directory")
    fault = looking.fail(errno.EROFS, on=changing, times=None)
    # when they are verified, then nothing was refused
    assert verify(looking, PATH).clean
    assert fault.met == 0


def test_bad_bytes_are_told_with_the_place_and_the_offsets() -> None:
    # given a segment of batches of five messages, one of which went bad
    files = MemoryFiles()
    log = start(files, segment=100_000).create("orders")
    fill(log, 20)
    batch = log.bytes // 4
    overwrite(files, segment_paths(log)[0], batch + 50, b"bad")
    # when it is verified
    report = verify(files, PATH)
    # then it says which messages are lost, and counts those that are left
    assert not report.clean
    assert gaps(store(report)) == [Gap(5, 10, batch, 2 * batch)]
    assert store(report).records == 15


def test_a_batch_that_is_being_written_is_no_damage() -> None:
    # given a segment that ends in the first bytes of a batch
    files = MemoryFiles()
    log = start(files).create("orders")
    fill(log, 10)
    path = segment_paths(log)[-1]
    whole = content(files, path)
    put_file(files, path, whole + whole[:100])
    # when it is verified
    report = verify(files, PATH)
    # then it is clean, and the bytes are mentioned
    assert report.clean
    assert store(report).files[-1].unfinished == 100
    assert store(report).records == 10


def test_bytes_at_the_end_that_are_no_beginning_of_a_batch_are_damage() -> None:
    files = MemoryFiles()
    log = start(files).create("orders")
    fill(log, 10)
    path = segment_paths(log)[-1]
    size = len(content(files, path))
    put_file(files, path, content(files, path) + b"no batch at all")
    assert gaps(store(verify(files, PATH))) == [Gap(10, 10, size, size + 15)]


def test_a_file_that_lost_its_flushed_end_is_damage() -> None:
    # given a segment whose index knows of more than is left of it
    files = MemoryFiles()
    node = start(files, segment=100_000)
    log = node.create("orders")
    fill(log, 20)
    node.close()
    path = segment_paths(log)[0]
    size = len(content(files, path))
    put_file(files, path, content(files, path)[: size // 2])
    # when it is verified
    report = verify(files, PATH)
    # then the lost offsets are told
    assert gaps(store(report)) == [Gap(10, 20, size // 2, size // 2)]


def test_a_segment_that_is_missing_is_damage_and_a_power_cut_is_none() -> None:
    # given a log of three segments, the middle one of which is gone
    files = MemoryFiles()
    node = start(files)
    log = node.create("orders")
    fill(log, 40)
    node.close()
    first, second, *_ = log.chain.segments
    files.unlink(second.path)
    report = store(verify(files, PATH))
    # then it is told as missing
    assert report.holes == [Hole(first.end, second.end, "missing")]
    assert not report.clean


def test_a_last_segment_that_is_missing_is_known_by_its_index() -> None:
    # given a log whose last file is gone
    files = MemoryFiles()
    node = start(files)
    log = node.create("orders")
    fill(log, 60)
    node.close()
    last = log.chain.segments[-1]
    files.unlink(last.path)
    # when it is verified
    report = store(verify(files, PATH))
    # then the file and its offsets are told
    assert [file.path for file in report.files if file.missing] == [last.path]
    assert gaps(report) == [Gap(last.first, 60, 0, 0)]
    assert not report.clean


def test_where_a_log_went_on_after_a_power_cut_is_a_hole_and_no_damage() -> None:
    # given a node whose machine lost power, with messages before and after that
    files = MemoryFiles()
    node = start(files)
    fill(node.create("orders"), 10)
    node.abandon()
    (log,) = start(files, boot="the next").logs
    fill(log, 10)
    # when it is verified
    report = store(verify(files, PATH))
    # then the hole is told, and nothing is damaged
    assert report.holes == [Hole(10, log.birth.resume, "power cut")]
    assert report.clean


def test_segments_that_retention_takes_meanwhile_are_no_damage() -> None:
    # given a node that deletes its first segments while the second one is looked at
    files = FailingFiles(MemoryFiles())
    node = start(files)
    log = node.create("orders")
    fill(log, 60)
    flush(log)
    second = log.chain.segments[1]

    def retention(call: Call) -> None:
        if call.method == "open" and second.path in call.paths:
            files.before = lambda _call: None
            log.delete_below(second.end)
            flush(log)

    files.before = retention
    # when it is verified
    report = verify(files, PATH)
    # then what is left is clean
    assert log.earliest == second.end
    assert report.clean


# --- the small files


def test_a_node_that_goes_on_after_a_clean_stop_is_clean() -> None:
    # given a log that was closed in the middle of a segment: its index has a mark for the batch that comes next
    files = MemoryFiles()
    node = start(files, segment=100_000)
    fill(node.create("orders"), 20)
    node.close()
    node = start(files, segment=100_000)
    # when that batch comes, later
    fill(node.logs[0], 20)
    node.close()
    # then the mark, which could not know its time, is right
    report = store(verify(files, PATH))
    assert (report.records, report.files[0].index) == (40, "good")


def test_an_index_that_was_hurt_is_told_and_one_that_is_missing_is_not() -> None:
    files = MemoryFiles()
    node = start(files)
    log = node.create("orders")
    fill(log, 20)
    node.close()
    index = log.chain.segments[0].index_path
    for data, state, clean in [(content(files, index)[:-1] + b"?", "damaged", False), (None, "missing", True)]:
        files.unlink(index)
        if data is not None:
            put_file(files, index, data)
        report = store(verify(files, PATH))
        assert (report.files[0].index, report.clean) == (state, clean)


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param((MARK, 5, START, 390), id="another-time"),
        pytest.param((MARK, 6, START + 2 * SECOND, 390), id="another-offset"),
        pytest.param((MARK, 5, START + 2 * SECOND, 391), id="no-batch"),
        pytest.param((SEAL, 5, START + SECOND, 390), id="sealed-before-the-end"),
        pytest.param((GAP, 5, 10, 390), id="a-gap-that-is-none"),
    ],
)
def test_an_index_that_says_other_things_than_the_log_is_wrong(entry: tuple[int, int, int, int]) -> None:
    # given a segment of four batches, and an index that is intact and says what is not so
    files = MemoryFiles()
    log = start(files, segment=100_000).create("orders")
    fill(log, 20)
    assert log.bytes == 4 * 390
    own = seed_of_index(0, log.birth.seed)
    good = encode_entry(MARK, 10, START + 3 * SECOND, 780, own) if entry[0] == GAP else b""
    put_file(files, log.chain.segments[0].index_path, encode_entry(*entry, own) + good)
    # when it is verified
    report = store(verify(files, PATH))
    # then that is told
    assert report.files[0].index == "wrong"
    assert not report.clean


@pytest.mark.parametrize("data", [b"", b"{}", b"no json", None], ids=["empty", "no fields", "no json", "missing"])
@pytest.mark.parametrize("name", ["node.json", "topic.json"])
def test_a_small_file_that_was_hurt_is_told(name: str, data: bytes | None) -> None:
    files = MemoryFiles()
    log = start(files).create("orders")
    fill(log, 10)
    path = f"{PATH if name == 'node.json' else log.directory}/{name}"
    files.unlink(path)
    if data is not None:
        put_file(files, path, data)
    report = verify(files, PATH)
    complaints = [*report.complaints, *store(report).complaints]
    assert [complaint.startswith(path) for complaint in complaints] == [True]
    assert not report.clean
    assert store(report).records == 10


def test_a_log_beyond_what_topic_json_reserves_is_told() -> None:
    files = MemoryFiles()
    node = start(files)
    log = node.create("orders")
    log.birth = log.birth._replace(reserved=10**15, resume=RESERVE)
    log.end = RESERVE + 1
    log.tail.release(log.end)
    fill(log, 5)
    assert [
        why.endswith(f"reserves offsets to {RESERVE}, the log ends at {RESERVE + 6}")
        for why in store(verify(files, PATH)).complaints
    ] == [True]


def test_a_topic_json_of_another_topic_is_told() -> None:
    # given the topic.json of one incarnation with the ids of another
    files = MemoryFiles()
    log = start(files).create("orders")
    fill(log, 5)
    birth.write(files, log.directory, log.birth._replace(base=log.birth.base + 1))
    (complaint,) = store(verify(files, PATH)).complaints
    assert "holds ids of another topic" in complaint


def test_notes_of_moved_messages_are_checked_too() -> None:
    # given a bucket of a timetable with notes that went bad
    files = MemoryFiles()
    log = start(files).create("orders")
    timetable = timetable_of(log)
    defer(timetable, [b"one", b"two"], START + 10**12)
    (name,) = [name for name, _ in files.list(timetable.directory)]
    put_file(files, f"{timetable.directory}/{name[:-24]}000000.moved", b"not a batch")
    report = verify(files, PATH)
    assert len(store(report, "timetable").complaints) == 1
    assert not report.clean


# --- what a path is


def test_a_topic_a_folder_of_it_and_one_file_can_be_verified_alone() -> None:
    files = MemoryFiles()
    node = start(files)
    log = node.create("orders")
    fill(node.create("bills"), 5)
    fill(log, 40)
    log.hold([1], START)
    flush(log)
    counts = {
        path: [(each.store.kind, each.records) for each in verify(files, path).stores]
        for path in (log.directory, f"{log.directory}/held", segment_paths(log)[1], f"{PATH}/topics")
    }
    assert counts == {
        log.directory: [("log", 40), ("held", 1)],
        f"{log.directory}/held": [("held", 1)],
        segment_paths(log)[1]: [("log", 10)],
        f"{PATH}/topics": [("log", 5), ("log", 40), ("held", 1)],
    }


def test_a_file_whose_folder_and_name_are_lost_is_verified_by_its_own_seed() -> None:
    files = MemoryFiles()
    log = start(files).create("orders")
    fill(log, 40)
    put_file(files, "/found", content(files, segment_paths(log)[1]))
    (report,) = verify(files, "/found").stores
    assert (report.records, report.files[0].first, report.clean) == (10, 10, True)


@pytest.mark.parametrize("path", ["/nowhere", "/data/nowhere", "/empty"])
def test_what_is_nothing_of_ours_is_refused(path: str) -> None:
    files = MemoryFiles()
    start(files)
    files.make_directory("/empty")
    with pytest.raises(NoLogThere):
        verify(files, path)


def test_a_newer_format_is_refused() -> None:
    files = MemoryFiles()
    start(files)
    put_file(files, f"{PATH}/node.json", b'{"format": 2, "identity": "00", "boot": "", "clean": true}')
    with pytest.raises(DataPathError, match="newer"):
        verify(files, PATH)


def test_pages_that_the_device_does_not_give_are_damage() -> None:
    class BadPage(MemoryFiles):
        def read(self, fd: int, size: int, position: int) -> bytes:
            if position <= 5000 < position + size:
                raise OSError(errno.EIO, "unreadable")
            return super().read(fd, size, position)

    files = BadPage()
    fill(start(files, segment=100_000).create("orders"), 200)
    report = verify(files, PATH)
    assert not report.clean
    assert store(report).files[0].unreadable
