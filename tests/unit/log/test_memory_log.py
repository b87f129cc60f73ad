"""The log of an ephemeral topic: a bounded end of what was appended, with the same face as a topic's log."""

from __future__ import annotations

import inspect
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import TooLarge
from penstock.log import memory_log
from penstock.log.chain import Hole
from penstock.log.memory_log import MemoryLog
from penstock.log.topic_log import TopicLog
from penstock.protocol.batch import HEADER, KEYED, RECORD, check, header, records
from tests.unit.log.builders import BIRTH, SEED, read_all, texts


def framed(bodies: list[bytes]) -> bytes:
    return b"".join(struct.pack(">I", len(body)) + body for body in bodies)


def test_a_batch_is_one_header_around_all_that_was_put() -> None:
    # given bodies that came in several ways
    log = MemoryLog(BIRTH, 100)
    log.append([b"zero"], 3)
    log.put([b"one", b""], 7)
    log.put([], 7)
    data = b"MPUB" + framed([b"three", b"four"]) + b"next command"
    log.put_framed(data, 4, len(data) - 12, 2, 8)
    # then nobody sees them before they are written
    assert (log.end, log.read(1)) == (1, None)
    assert log.write(9, flags=KEYED, key=b"key") == 1
    block = log.read(1)
    assert block is not None
    assert check(block.data, 0, SEED) == len(block.data)
    assert header(block.data)[:5] == (1, 4, 9, KEYED, b"key")
    assert texts(list(records(block.data))) == list(enumerate([b"one", b"", b"three", b"four"], 1))
    assert [record.timestamp for record in records(block.data)] == [7, 7, 8, 8]
    # and a write of nothing is nothing
    assert (log.write(10), log.end) == (5, 5)


def test_framed_bodies_that_fill_less_than_was_said_leave_nothing_behind_them() -> None:
    log = MemoryLog(BIRTH, 100)
    data = framed([b"one"])
    log.put_framed(data + b"more", 0, len(data) + 4, 1, 0)
    log.write(0)
    block = log.read(0)
    assert block is not None
    assert len(block.data) == HEADER + RECORD + 3


def test_bodies_that_cannot_be_put_change_nothing_of_what_was_put() -> None:
    log = MemoryLog(BIRTH, 100)
    log.put([b"one"], 0)
    with pytest.raises(ValueError, match="early"):
        log.put_framed(b"\0\0\0\5abc", 0, 7, 1, 0)
    with pytest.raises(TypeError):
        log.put([b"two", "three"], 0)  # type: ignore[list-item]
    log.append([b"two"], 0)
    assert texts(read_all(log)) == [(0, b"one"), (1, b"two")]  # type: ignore[arg-type]


def test_more_than_a_batch_can_hold_is_refused_in_one_put_or_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_log, "PAYLOAD", 1000)
    log = MemoryLog(BIRTH, 100)
    with pytest.raises(TooLarge, match="orders: 1001 bytes"):
        log.put([bytes(1001 - RECORD)], 0)
    with pytest.raises(TooLarge):
        log.put_framed(b"", 0, 0, 1 << 40, 0)
    log.put([bytes(600)], 0)
    with pytest.raises(TooLarge):
        log.put_framed(framed([bytes(400)]), 0, 404, 1, 0)
    log.put([bytes(1000 - 600 - 2 * RECORD)], 0)
    log.write(0)
    assert (log.end, log.bytes) == (2, 1000 + HEADER)


@given(st.lists(st.integers(1, 6), max_size=40), st.integers(0, 20), st.integers(0, 60))
def test_it_holds_no_more_than_its_limit_in_whole_batches_and_the_last_one_always(
    counts: list[int], limit: int, deleted: int
) -> None:
    # given a bounded log beside an unbounded list
    log = MemoryLog(BIRTH, limit)
    batches: list[range] = []
    for number, count in enumerate(counts):
        first = log.append([b"%d" % at for at in range(count)], 100 + number)
        batches.append(range(first, first + count))
        assert log.end - log.earliest <= max(limit, count)
    # then it holds the newest batches that fit, and has counted the others
    kept = [batch for batch in batches if batch.start >= log.earliest]
    assert log.end == log.committed == sum(counts)
    assert log.dropped == log.earliest == sum(map(len, batches)) - sum(map(len, kept))
    if len(kept) < len(batches):
        assert sum(map(len, kept)) + len(batches[-len(kept) - 1]) > limit
    # and what is deleted is gone, and no more
    log.delete_below(deleted)
    kept = [batch for batch in kept if batch.stop > deleted]
    assert [record.offset for record in read_all(log)] == [o for batch in kept for o in batch]  # type: ignore[arg-type]
    assert log.bytes == sum(len(block.data) for block in log._blocks)
    assert log.earliest == (kept[0].start if kept else log.end)
    # and any offset and any time leads to its batch, or to the first that is kept
    for offset in range(log.end):
        block = log.read(offset)
        expected = next((batch for batch in kept if batch.stop > offset), None)
        assert (block and range(block.first, block.next)) == expected
    for time in range(99, 100 + len(counts) + 1):
        times = {batches.index(batch) + 100: batch.start for batch in kept}
        assert log.at_time(time) == min((first for when, first in times.items() if when >= time), default=log.end)
    assert log.holes(0, log.end) == []


def test_times_never_run_backwards() -> None:
    log = MemoryLog(BIRTH, 100)
    for time in (5, 3, 9):
        log.append([b""], time)
    assert [header(block.data).appended for block in log._blocks] == [5, 5, 9]


def test_blocks_that_were_handed_out_stay_though_theirs_is_dropped() -> None:
    log = MemoryLog(BIRTH, 1)
    log.append([b"old"], 0)
    block = log.read(0)
    log.append([b"new"], 0)
    assert log.earliest == 1
    assert block is not None
    assert texts(list(records(block.data))) == [(0, b"old")]


def test_what_lies_in_a_hole_is_never_read() -> None:
    log = MemoryLog(BIRTH, 100)
    for body in (b"0", b"1", b"2", b"3"):
        log.append([body], 0)
    log.add_hole(Hole(1, 3, "emptied"))
    assert [block and block.first for block in map(log.read, range(4))] == [0, 3, 3, 3]
    assert log.bytes == sum(len(block.data) for block in log._blocks)
    assert log.holes(0, 4) == [Hole(1, 3, "emptied")]
    assert (log.holes(0, 2), log.holes(2, 3)) == ([Hole(1, 2, "emptied")], [Hole(2, 3, "emptied")])
    log.add_hole(Hole(3, 4, "emptied"))
    assert log.holes(0, 4) == [Hole(1, 4, "emptied")]
    assert log.read(1) is None
    assert log.end == 4


def test_so_many_bytes_reach_so_far() -> None:
    log = MemoryLog(BIRTH, 3)
    for body in (b"0", b"1", b"2", b"3", b"4"):
        log.append([body], 0)
    one = len(log._blocks[0].data)
    assert [log.reach(3, size) for size in (0, one - 1, one, 2 * one - 1, 2 * one)] == [3, 3, 4, 4, 5]
    assert (log.reach(0, one), log.reach(5, 0)) == (3, 5)


@pytest.mark.parametrize(
    "name", ["append", "put", "put_framed", "write", "read", "reach", "at_time", "holes", "delete_below"]
)
def test_it_is_called_as_a_topic_s_log_is(name: str) -> None:
    ours, theirs = (inspect.signature(getattr(kind, name)) for kind in (MemoryLog, TopicLog))
    assert ours == theirs
