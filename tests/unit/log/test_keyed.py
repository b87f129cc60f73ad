"""Batches under a producer's key: what a log tells of them, and until when it keeps them where a start finds them."""

from __future__ import annotations

from random import Random

import pytest

from penstock.errors import CorruptLog
from penstock.log.keyed import Key, unpack
from penstock.log.timetable import timetable
from penstock.log.timetable.bucket import Limits
from penstock.log.topic_log import TopicLog
from penstock.protocol.batch import KEYED
from tests.kit import MemoryFiles, PowerCuts
from tests.unit.log.builders import TOPICS, flush_log, new_log, open_log, read_all

START = 10**18
HOUR = 3600 * 10**9
BIG = 1000  # bytes of a segment


def publish(log: TopicLog, sequence: int, body: bytes = b"x" * 100) -> None:
    log.append([body], START, flags=KEYED, key=Key(b"spark", sequence, b"digest").pack())


def sequences(log: TopicLog) -> list[int]:
    return [unpack(each.key).sequence for each in log.keyed]


def found_after_a_kill(log: TopicLog) -> list[int]:
    return sequences(open_log(log.disk.files, max_bytes_per_file=BIG))


def say_what_is_flushed(log: TopicLog) -> None:
    """As a node does: the journal has it, on the device."""
    for each in log.flushed_keys():
        log.key_known(each)


# --- the key


@pytest.mark.parametrize("key", [Key(b"p", 0, b""), Key(b"spark-7", (1 << 63) - 1, bytes(255)), Key(b"", 1, b"d")])
def test_a_key_is_what_was_packed(key: Key) -> None:
    assert unpack(key.pack()) == key


@pytest.mark.parametrize("key", [b"", bytes(8), bytes(8) + b"\x05abcd"])
def test_what_no_producer_wrote_is_no_key(key: bytes) -> None:
    with pytest.raises(CorruptLog, match="no producer's key"):
        unpack(key)


# --- the log


def test_a_batch_is_told_of_when_it_is_on_the_device_and_once() -> None:
    log = new_log()
    publish(log, 1)
    publish(log, 2)
    assert log.flushed_keys() == []
    flush_log(log)
    publish(log, 3)
    told = log.flushed_keys()
    assert [(each.first, each.end, each.time, unpack(each.key).sequence) for each in told] == [
        (0, 1, START, 1),
        (1, 2, START, 2),
    ]
    assert log.flushed_keys() == []


def test_a_start_finds_the_batches_that_nobody_else_knows_of() -> None:
    # given batches over several segments, flushed and marked as far as they may be
    log = new_log(max_bytes_per_file=BIG)
    for sequence in range(20):
        publish(log, sequence)
    flush_log(log)
    assert found_after_a_kill(log) == list(range(20))
    # when the journal has the first of them
    for each in log.flushed_keys()[:8]:
        log.key_known(each)
    # then a start finds the others, and few of those
    found = found_after_a_kill(log)
    assert found[-12:] == list(range(8, 20))
    assert len(found) < 20


def test_what_is_known_elsewhere_is_not_looked_for() -> None:
    log = new_log(max_bytes_per_file=BIG)
    for sequence in range(20):
        publish(log, sequence)
    flush_log(log)
    say_what_is_flushed(log)
    assert all(segment.index.sealed for segment in log.chain.segments[:-1])
    log.close()
    assert found_after_a_kill(log) == []


def test_nobody_is_told_that_it_is_kept_when_it_goes_as_soon_as_somebody_else_knows_of_it() -> None:
    # given segments that are to go, and that only keep batches which nobody else knows of
    log = new_log(max_bytes_per_file=BIG)
    for sequence in range(20):
        publish(log, sequence)
    below = log.chain.segments[2].first
    log.delete_below(below)
    flush_log(log)
    assert log.earliest == 0
    # then who asks now where a channel may begin is told of what stays
    assert log.kept_from == below
    # when somebody knows, then they go, and no more than that
    say_what_is_flushed(log)
    flush_log(log)
    assert (log.earliest, log.kept_from) == (below, below)


def test_a_clean_stop_leaves_no_mark_behind_a_batch_that_nobody_else_knows_of() -> None:
    log = new_log()
    log.append([b"before"], START)
    publish(log, 7)
    log.append([b"behind"], START)
    log.close()
    assert found_after_a_kill(log) == [7]


def test_a_batch_that_nobody_else_knows_of_is_not_deleted() -> None:
    log = new_log(max_bytes_per_file=BIG)
    for sequence in range(20):
        publish(log, sequence)
    flush_log(log)
    log.delete_below(20)
    flush_log(log)
    assert log.earliest == 0
    say_what_is_flushed(log)
    flush_log(log)
    assert log.earliest > 10


def test_a_batch_that_a_thread_writes_has_its_key_too() -> None:
    log = new_log()
    log.put([b"a"], START)
    log.write_apart(START, key=Key(b"spark", 3, b"").pack())()
    assert sequences(log) == found_after_a_kill(log) == [3]


def test_a_start_tells_of_what_it_found_when_that_is_flushed() -> None:
    # given batches that a killed process had not flushed
    log = new_log()
    publish(log, 1)
    again = open_log(log.disk.files)
    assert again.flushed_keys() == []
    # when the next one flushes them, then they are told of
    flush_log(again)
    assert [unpack(each.key).sequence for each in again.flushed_keys()] == [1]


# --- what is deferred


def test_what_is_deferred_under_a_key_is_told_of_in_its_turn() -> None:
    log = new_log()
    log.defer([b"later"], START + HOUR, START, key=Key(b"spark", 1, b"d").pack())
    publish(log, 2)
    assert sequences(open_log(log.disk.files)) == [1, 2]
    flush_log(log)
    assert [unpack(each.key).sequence for each in log.flushed_keys()] == [1, 2]


def test_a_bucket_ends_when_its_keys_are_known() -> None:
    # given a message that is due at once: it is moved when it is flushed, and not before
    log = new_log()
    log.defer([b"soon"], START + 5, START, key=Key(b"spark", 1, b"d").pack())
    assert log.flush_due
    assert (log.next_due, log.move_due(START + 5)) == (None, 0)
    flush_log(log)
    assert (log.next_due, log.move_due(START + 5)) == (START + 5, 1)
    flush_log(log)
    # then its key is found by a start, and the message is there once
    again = open_log(log.disk.files)
    assert sequences(again) == [1]
    assert (again.deferred_count, len(read_all(again))) == (0, 1)
    # and the bucket goes when the key is known
    say_what_is_flushed(log)
    flush_log(log)
    assert sequences(open_log(log.disk.files)) == []
    assert list(log.disk.files.list(log.timetable.directory)) == []


def test_a_bucket_is_split_when_its_keys_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    # given more than may be loaded, of which one batch has a key
    monkeypatch.setattr(timetable, "Limits", lambda: Limits(load=1500, entries=24, held=4000))
    log = new_log()
    log.defer([b"x" * 100] * 40, START + HOUR, START, key=Key(b"spark", 1, b"d").pack())
    assert log.timetable.prepare(START + HOUR - 10**8) is None
    # when that is known, then the bucket is split, and nothing is lost
    flush_log(log)
    say_what_is_flushed(log)
    work = log.timetable.prepare(START + HOUR - 10**8)
    assert work is not None
    work()
    assert log.deferred_count == 40


# --- power cuts


def test_after_a_power_cut_each_batch_is_there_with_its_key_or_neither_is() -> None:
    # given a log that is flushed, told of and marked now and then
    files = PowerCuts()
    files.make_directory(TOPICS)
    files.flush_all("/")
    log = new_log(files, max_bytes_per_file=BIG, sync_every=1)
    known: list[tuple[int, int]] = []  # (step, sequence)
    for sequence in range(30):
        publish(log, sequence, b"%d" % sequence)
        if sequence % 3 == 0:
            flush_log(log)
        if sequence % 4 == 0:
            for each in log.flushed_keys():
                known.append((files.step, unpack(each.key).sequence))
                log.key_known(each)
    # when the power goes at any moment
    for moment in files.moments():
        said = [sequence for step, sequence in known if step <= moment.step]
        for state in moment.cuts(Random(moment.step), 2):
            if not state.exists(f"{log.directory}/topic.json"):
                continue
            again = open_log(state, after_power_cut=True, max_bytes_per_file=BIG)
            flush_log(again)
            # then a sequence is known by the journal or by the log exactly where its message is there
            there = [int(record.body) for record in read_all(again)]
            assert set(there) == set(said) | set(sequences(again))


def test_keys_are_no_concern_of_an_index_in_memory() -> None:
    # given a log read to and fro while keys wait to be known
    log = new_log(MemoryFiles(), max_bytes_per_file=BIG)
    for sequence in range(20):
        publish(log, sequence)
    flush_log(log)
    assert [record.offset for record in read_all(log)] == list(range(20))
    say_what_is_flushed(log)
    assert [record.offset for record in read_all(log, 5)] == list(range(5, 20))


def test_a_clean_stop_says_how_far_the_log_went_where_a_start_has_to_look() -> None:
    # given a log that stopped in order, with a batch that only it knows of
    log = new_log()
    log.append([b"before"], START)
    publish(log, 7)
    log.append([b"behind"], START)
    log.close()
    assert open_log(log.disk.files).end == 3
    # when its end is gone
    fd = log.disk.files.open(log.chain.segments[0].path)
    log.disk.files.truncate(fd, log.chain.segments[0].position - 1)
    # then no offset of it is given out again
    again = open_log(log.disk.files)
    assert again.disk.damages
    assert again.append([b"after"], START) > 3
    assert sequences(again) == [7]
