"""Repairing: what the batches can say is said again, no message goes, and beside a node nothing is done."""

from __future__ import annotations

import errno
import json

import pytest

from penstock.errors import DataPathError, DiskFull
from penstock.log.birth import read as read_birth
from penstock.log.tools.repair import Deed, repair
from penstock.log.tools.verify import verify
from penstock.log.topic_log import TopicLog
from penstock.protocol.batch import records
from tests.kit import FailingFiles, MemoryFiles
from tests.unit.log.tools.node import PATH, content, fill, flush, overwrite, put_file, segment_paths, start


def stopped(files: MemoryFiles, count: int = 60, *, clean: bool = True) -> TopicLog:
    """The log of a node that stopped in order, or was killed."""
    node = start(files)
    log = node.create("orders")
    fill(log, count)
    if clean:
        node.close()
    else:
        flush(log)
        node.abandon()
    return log


def repaired(files: MemoryFiles, path: str = PATH, *, dry_run: bool = False) -> list[tuple[str, str]]:
    return [(deed.verb, deed.path) for deed in repair(files, path, dry_run=dry_run)]


def bodies(log: TopicLog) -> dict[int, bytes]:
    found = {}
    offset = log.earliest
    while block := log.read(offset):
        found.update({record.offset: record.body for record in records(block.data)})
        offset = block.next
    return found


def test_what_is_healthy_is_left_alone() -> None:
    files = MemoryFiles()
    stopped(files)
    before = files.tree()
    assert repaired(files) == []
    assert files.tree() == before


def test_a_running_node_is_refused() -> None:
    files = MemoryFiles()
    log = start(files).create("orders")
    fill(log, 10)
    for path in (PATH, log.directory, segment_paths(log)[0]):
        with pytest.raises(DataPathError, match="in use by another process"):
            list(repair(files, path))


def test_the_lock_is_let_go_when_all_is_done() -> None:
    files = MemoryFiles()
    stopped(files)
    list(repair(files, PATH))
    start(files).close()
    assert files.opened() == []


@pytest.mark.parametrize("harm", ["missing", "damaged", "of another segment"])
def test_indexes_are_made_again_and_say_what_they_said(harm: str) -> None:
    # given a log with two of its indexes hurt
    files = MemoryFiles()
    log = stopped(files)
    first, second, *_, last = log.chain.segments
    kept = {each.index_path: content(files, each.index_path) for each in (first, last)}
    for path in kept:
        files.unlink(path)
        if harm != "missing":
            put_file(files, path, b"?" * 64 if harm == "damaged" else content(files, second.index_path))
    # when it is repaired
    assert repaired(files) == [("repair", path) for path in kept]
    # then all of it is well again, and a start reads no batch of a sealed segment
    assert verify(files, PATH).clean
    assert content(files, first.index_path) == kept[first.index_path]
    assert bodies(start(files).logs[0]) == bodies(log)


def test_an_index_made_again_hides_no_batch_with_a_key_from_a_start() -> None:
    # given a batch that was published under a key, between others
    files = MemoryFiles()
    node = start(files, segment=100_000)
    log = node.create("orders")
    fill(log, 10)
    log.append([b"once"], log.last_time, flags=1, key=b"producer")
    fill(log, 10)
    node.close()
    files.unlink(log.chain.segments[0].index_path)
    # when the lost index is made again
    list(repair(files, PATH))
    # then the next start finds that batch, as it may be noted nowhere else
    (again,) = start(files).logs
    assert [each.key for each in again.keyed] == [b"producer"]


def test_damage_is_told_and_stays_where_it_is() -> None:
    files = MemoryFiles()
    log = stopped(files)
    path = segment_paths(log)[0]
    overwrite(files, path, 50, b"bad")
    hurt = content(files, path)
    assert ("leave", path) in repaired(files)
    assert content(files, path) == hurt
    assert sorted(bodies(start(files).logs[0])) == list(range(5, 60))


@pytest.mark.parametrize("data", [b"{}", None], ids=["damaged", "missing"])
def test_a_topic_json_is_made_again_and_no_offset_is_given_out_twice(data: bytes | None) -> None:
    # given a log that lost its topic.json
    files = MemoryFiles()
    log = stopped(files)
    path = f"{log.directory}/topic.json"
    files.unlink(path)
    if data is not None:
        put_file(files, path, data)
    # when it is repaired
    assert repaired(files) == [("repair", path)]
    # then it is the same topic with the same ids, and goes on beyond what it may have reserved
    (again,) = start(files).logs
    assert (again.birth.name, again.birth.incarnation, again.birth.base) == log.birth[:3]
    assert again.end > log.birth.reserved
    assert bodies(again) == bodies(log)


def test_a_log_that_lost_its_end_goes_on_beyond_it() -> None:
    # given a log whose last file lost batches that its index knows of
    files = MemoryFiles()
    log = stopped(files)
    path = segment_paths(log)[-1]
    put_file(files, path, content(files, path)[:390])
    # when it is repaired
    verbs = {path: verb for verb, path in repaired(files)}
    # then no offset that was given out is given out again, and that is done once
    assert verbs[f"{log.directory}/topic.json"] == "repair"
    assert "repair" not in dict(repaired(files))
    (again,) = start(files).logs
    assert again.end >= log.end
    assert sorted(bodies(again)) == list(range(55))


def test_a_log_that_lost_its_last_file_goes_on_beyond_it() -> None:
    files = MemoryFiles()
    log = stopped(files)
    last = segment_paths(log)[-1]
    files.unlink(last)
    assert repaired(files) == [("leave", last), ("repair", f"{log.directory}/topic.json")]
    assert repaired(files) == [("leave", last)]
    (again,) = start(files).logs
    assert again.end >= log.end


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        pytest.param(b'{"format": 1, "identity": "0123456789abcdef", "boo', True, id="readable"),
        pytest.param(b"", False, id="empty"),
        pytest.param(None, False, id="missing"),
    ],
)
def test_node_json_is_made_again_with_its_identity_where_that_can_be_read(data: bytes | None, kept: bool) -> None:
    files = MemoryFiles()
    log = stopped(files)
    files.unlink(f"{PATH}/node.json")
    if data is not None:
        put_file(files, f"{PATH}/node.json", data)
    (deed,) = repair(files, PATH)
    assert deed.path == f"{PATH}/node.json"
    assert ("kept" in deed.why) is kept
    identity = json.loads(content(files, f"{PATH}/node.json"))["identity"]
    assert (identity == "0123456789abcdef") is kept
    # and the next start takes it that power was cut: nobody knows better
    again = start(files)
    assert again.identity == identity
    assert again.logs[0].end > log.birth.reserved


def test_what_was_being_made_when_a_node_was_killed_is_removed() -> None:
    files = MemoryFiles()
    log = stopped(files)
    litter = [f"{PATH}/node.json.partial", f"{log.directory}/topic.json.partial"]
    for path in litter:
        put_file(files, path, b"half")
    put_file(files, f"{log.directory}/{0:020d}.rescue", content(files, segment_paths(log)[0])[:700])
    assert repaired(files) == [
        ("remove", litter[0]),
        ("remove", f"{log.directory}/{0:020d}.rescue"),
        ("remove", litter[1]),
    ]
    assert verify(files, PATH).stores[0].notes == []


def test_a_copy_that_holds_messages_which_the_log_lost_is_left() -> None:
    # given a copy that a failed flush began, of batches that did not outlive it
    files = MemoryFiles()
    log = stopped(files)
    path = segment_paths(log)[-1]
    rescue = path.replace(".log", ".rescue")
    put_file(files, rescue, content(files, path))
    put_file(files, path, content(files, path)[:390])
    assert ("leave", rescue) in repaired(files)
    assert files.exists(rescue)


def test_a_dry_run_says_the_same_and_does_nothing() -> None:
    # given a data path with all that can be repaired
    files = MemoryFiles()
    log = stopped(files)
    for path in (f"{PATH}/node.json", f"{log.directory}/topic.json", log.chain.segments[0].index_path):
        files.unlink(path)
    put_file(files, f"{log.directory}/topic.json.partial", b"")
    before = files.tree()
    # when it is run dry, and then in earnest
    said = repaired(files, dry_run=True)
    assert files.tree() == before
    done = repaired(files)
    # then both tell the same
    assert said == done
    assert len(done) == 4
    assert repaired(files) == []


def test_one_topic_and_one_file_can_be_repaired_alone() -> None:
    files = MemoryFiles()
    log = stopped(files)
    first, second, *_ = log.chain.segments
    for each in (first, second):
        files.unlink(each.index_path)
    assert repaired(files, second.path) == [("repair", second.index_path)]
    assert repaired(files, log.directory) == [("repair", first.index_path)]
    assert verify(files, PATH).clean


def test_a_topic_that_was_copied_elsewhere_is_repaired_there() -> None:
    files = MemoryFiles()
    log = stopped(files)
    files.rename(log.directory, f"/{log.birth.folder}")
    files.unlink(f"/{log.birth.folder}/topic.json")
    assert repaired(files, f"/{log.birth.folder}") == [("repair", f"/{log.birth.folder}/topic.json")]
    assert read_birth(files, f"/{log.birth.folder}").base == log.birth.base


def test_repair_can_be_broken_off_anywhere_and_begun_again() -> None:
    # given a data path with all that can be repaired
    whole = MemoryFiles()
    log = stopped(whole)
    for path in (f"{PATH}/node.json", f"{log.directory}/topic.json", log.chain.segments[0].index_path):
        whole.unlink(path)
    counted = FailingFiles(whole.copy())
    list(repair(counted, PATH))
    # when it fails at each of its calls
    for number in range(len(counted.calls)):
        files = whole.copy()
        failing = FailingFiles(files)
        fault = failing.fail(errno.ENOSPC, skip=number, on=("write", "flush", "rename", "truncate", "open"))
        if not _fails(failing):
            assert not fault.met
            break
        # then the next one does all of it, and nothing is left open
        assert files.opened() == []
        list(repair(files, PATH))
        assert verify(files, PATH).clean
        assert sorted(bodies(start(files).logs[0])) == list(range(60))


def _fails(files: FailingFiles) -> list[Deed] | bool:
    try:
        list(repair(files, PATH))
    except DiskFull:
        return True
    return False
