"""Dumping: what is asked for and nothing else, over damage, from whatever is left of a topic."""

from __future__ import annotations

import pytest

from penstock.log import entries as e
from penstock.log.index import Gap
from penstock.log.tools.dump import Damaged, Found, Wanted, dump_entries, dump_records
from penstock.log.tools.stores import find
from penstock.log.topic_log import TopicLog
from tests.kit import MemoryFiles
from tests.unit.log.tools.node import (
    PATH,
    SECOND,
    START,
    content,
    fill,
    flush,
    overwrite,
    put_file,
    segment_paths,
    start,
    write_journal,
)


def dumped(files: MemoryFiles, path: str, wanted: Wanted | None = None) -> tuple[list[Found], list[Damaged]]:
    damage: list[Damaged] = []
    found = [
        each for store in find(files, path) for each in dump_records(files, store, wanted or Wanted(), damage.append)
    ]
    return found, damage


def offsets(files: MemoryFiles, path: str, wanted: Wanted | None = None) -> list[int]:
    found, damage = dumped(files, path, wanted)
    assert not damage
    return [each.record.offset for each in found]


@pytest.fixture(params=["flushed, with indexes", "as a kill leaves it"])
def log(request: pytest.FixtureRequest) -> TopicLog:
    """Sixty messages in batches of five, a second apart, in segments of two batches."""
    log = start(MemoryFiles()).create("orders")
    fill(log, 60)
    if request.param.startswith("flushed"):
        flush(log)
    return log


def files_of(log: TopicLog) -> MemoryFiles:
    assert isinstance(log.disk.files, MemoryFiles)
    return log.disk.files


def test_every_record_comes_out_as_it_was_put_in(log: TopicLog) -> None:
    found, damage = dumped(files_of(log), log.directory)
    assert damage == []
    assert [each.record.offset for each in found] == list(range(60))
    assert [each.record.body for each in found] == [(b"%d orders " % number).ljust(40, b".") for number in range(60)]
    assert [int(each.record.id, 16) for each in found] == [log.birth.base + number for number in range(60)]
    assert [each.appended for each in found] == [START + (1 + number // 5) * SECOND for number in range(60)]


@pytest.mark.parametrize("first", [0, 1, 5, 9, 10, 11, 58, 59, 60, 1000])
@pytest.mark.parametrize("end", [0, 1, 5, 10, 11, 59, 60, 1000])
def test_offsets_bound_what_comes_out(log: TopicLog, first: int, end: int) -> None:
    assert offsets(files_of(log), log.directory, Wanted(first, end)) == list(range(first, min(end, 60)))


@pytest.mark.parametrize("since", range(0, 14, 3))
@pytest.mark.parametrize("until", [0, 1, 6, 13])
def test_times_of_the_append_bound_what_comes_out(log: TopicLog, since: int, until: int) -> None:
    wanted = Wanted(since=START + since * SECOND, until=START + until * SECOND)
    expected = [number for number in range(60) if since <= 1 + number // 5 < until]
    assert offsets(files_of(log), log.directory, wanted) == expected


def test_an_index_that_lies_leads_nobody_astray(log: TopicLog) -> None:
    # given the index of one segment under the name of another
    first, second, *_ = log.chain.segments
    files = files_of(log)
    put_file(
        files, first.index_path, content(files, second.index_path) if files.exists(second.index_path) else b"x" * 64
    )
    # then what is asked for comes out
    assert offsets(files, log.directory, Wanted(7)) == list(range(7, 60))


def test_damage_is_stepped_over_and_told(log: TopicLog) -> None:
    # given a batch in the first segment that went bad, and a segment with a bad end
    files = files_of(log)
    first, second, *_ = segment_paths(log)
    overwrite(files, first, 60, b"bad")
    size = len(content(files, second))
    put_file(files, second, content(files, second) + b"not a batch")
    # when the log is dumped
    found, damage = dumped(files, log.directory)
    # then all others come out, and what was stepped over is said
    assert [each.record.offset for each in found] == list(range(5, 60))
    assert damage == [Damaged(first, Gap(0, 5, 0, 390)), Damaged(second, Gap(20, 20, size, size + 11))]


def test_a_lone_segment_is_dumped_though_topic_json_and_the_folder_are_lost(log: TopicLog) -> None:
    files = files_of(log)
    files.unlink(f"{log.directory}/topic.json")
    assert offsets(files, segment_paths(log)[2]) == list(range(20, 30))
    put_file(files, "/somewhere.bin", content(files, segment_paths(log)[2]))
    assert offsets(files, "/somewhere.bin") == list(range(20, 30))


def test_a_topic_whose_folder_was_renamed_is_dumped(log: TopicLog) -> None:
    files = files_of(log)
    files.rename(log.directory, "/old orders")
    assert offsets(files, "/old orders") == list(range(60))
    files.rename("/old orders", "/orders@copy")
    assert offsets(files, "/orders@copy") == list(range(60))


@pytest.mark.parametrize("known", [True, False], ids=["topic.json", "no topic.json"])
def test_stragglers_have_the_offsets_they_had(known: bool) -> None:
    # given messages that were held when their segments went
    files = MemoryFiles()
    log = start(files).create("orders")
    fill(log, 60)
    log.hold([3, 12, 17], log.last_time)
    log.delete_below(20)
    flush(log)
    if not known:
        files.unlink(f"{log.directory}/topic.json")
    # when they are dumped
    found, _ = dumped(files, f"{log.directory}/held", Wanted(4, 15))
    # then it is by those
    assert [(each.record.offset, each.record.body[:9]) for each in found] == [(12, b"12 orders")]


def test_deferred_messages_come_out_with_the_time_they_wait_for() -> None:
    # given three deferred messages, of which the first was moved into the log
    files = MemoryFiles()
    log = start(files).create("orders")
    for number in range(3):
        log.defer([b"message %d" % number], START + (number + 1) * SECOND // 10, START)
    flush(log)
    while work := log.timetable.prepare(START):
        work()
    assert log.move_due(START + SECOND // 10) == 1
    flush(log)
    # when they are dumped
    found, damage = dumped(files, log.timetable.directory)
    # then it is those that still wait
    assert damage == []
    assert [(each.record.body, each.due, each.record.timestamp) for each in found] == [
        (b"message 1", START + SECOND // 5, START),
        (b"message 2", START + 3 * SECOND // 10, START),
    ]


def test_a_journal_comes_out_entry_by_entry() -> None:
    files = MemoryFiles()
    node = start(files)
    blocks: list[list[e.Entry]] = [
        [e.TopicCreated(0, "orders", "00"), e.ChannelCreated(0, 0, "archive", 0, START)],
        [e.Progress(0, 0, 10, b"", e.pack_messages([(3, 1, e.READY)]))],
    ]
    write_journal(node, *blocks)
    (store,) = find(files, f"{PATH}/journal")
    damage: list[Damaged] = []
    found = list(dump_entries(files, store, Wanted(first=1), damage.append))
    assert [(each.ordinal, each.entry) for each in found] == [(1, blocks[0][1]), (2, blocks[1][0])]
    assert [each.appended for each in found] == [START, START + SECOND]
    # and a lone file of it is known for what it is
    put_file(files, "/lost+found", content(files, f"{PATH}/journal/{0:020d}.log"))
    assert [store.kind for store in find(files, "/lost+found")] == ["journal"]
