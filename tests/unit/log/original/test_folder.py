"""A whole folder of nsqd: what it holds, what is wrong with it, and that it stays as it is."""

from __future__ import annotations

import errno
import json

import pytest

from penstock.errors import DataPathError, DiskFailed, ImportFailed, PenstockError
from penstock.log.original import Finding, Folder, Kind
from tests.kit import FailingFiles, MemoryFiles

from .folders import FOLDER, folder, put, put_meta, put_queue, record, records


def contents(opened: Folder) -> dict[str, tuple[dict[str, list[int]], list[int]]]:
    """By topic: what each channel has not finished, and what the topic has not handed out."""
    found = {}
    for topic in opened.topics.values():
        channels: dict[str, list[int]] = {name: [] for name in topic.channels}
        for message in topic.unfinished("/scratch"):
            for channel in message.attempts:
                channels[channel].append(int(message.id, 16))
        found[topic.name] = (channels, [int(message.id, 16) for message in topic.unrouted()])
    return found


def test_a_folder_after_a_clean_shutdown_gives_all_and_has_nothing_to_tell() -> None:
    # given a folder with two topics, one of which has channels, one of those idle
    files = folder()
    topics = [
        {"name": "t", "paused": True, "channels": [{"name": "a", "paused": False}, {"name": "b", "paused": True}]},
        {"name": "lonely", "paused": False, "channels": None},
    ]
    put(files, "nsqd.dat", json.dumps({"topics": topics, "version": "1.2.1"}).encode())
    put_queue(files, "t", records(8, 9))
    put_queue(files, "t:a", records(2, 1), records(3), records(5, 4), first=6, read_at=len(record(2)))
    put_meta(files, "t:b", 0, (0, 0), (0, 0))
    put_queue(files, "lonely", records(1))
    before = files.tree()
    # when it is read
    with Folder(files, FOLDER) as opened:
        # then everything is there
        assert opened.version == "1.2.1"
        assert contents(opened) == {"lonely": ({}, [1]), "t": ({"a": [1, 3, 4, 5], "b": []}, [8, 9])}
        assert {name: topic.paused for name, topic in opened.topics.items()} == {"t": True, "lonely": False}
        channels = opened.topics["t"].channels
        assert {name: channel.paused for name, channel in channels.items()} == {"a": False, "b": True}
        assert [queue.depth for channel in channels.values() for queue in channel.queues] == [4]
        assert opened.findings == {}
    # and the folder is as it was
    assert files.tree() == before
    assert files.opened() == []


@pytest.mark.parametrize("topic", [".", "..", "nsqd.dat", "x.diskqueue.000001.dat", "x.diskqueue.meta.dat", "a.b"])
@pytest.mark.parametrize("separator", [":", ";"])
def test_any_valid_name_is_told_from_the_others(topic: str, separator: str) -> None:
    # given a topic whose name could be that of a file, beside one called x
    files = folder(topic, "x", channels=[topic])
    put_queue(files, topic, records(1))
    put_queue(files, f"{topic}{separator}{topic}", records(2))
    put_queue(files, "x", records(3), first=1)
    put_queue(files, f"x{separator}{topic}", records(4), first=1)
    # when the folder is read
    with Folder(files, FOLDER) as opened:
        # then each has its own
        assert contents(opened) == {topic: ({topic: [2]}, [1]), "x": ({topic: [4]}, [3])}
        assert opened.findings == {}


def test_queues_that_are_not_listed_are_taken_as_their_names_say() -> None:
    files = folder("t")
    put_queue(files, "t:c", records(1))
    put_queue(files, "u", records(2))
    put_queue(files, "v:d", records(3))
    with Folder(files, FOLDER) as opened:
        assert contents(opened) == {"t": ({"c": [1]}, []), "u": ({}, [2]), "v": ({"d": [3]}, [])}
        assert list(opened.findings) == [Finding(Kind.UNLISTED, name) for name in ("t:c", "u", "v:d")]


@pytest.mark.parametrize(
    ("text", "kind"),
    [pytest.param(None, Kind.NO_METADATA, id="missing"), pytest.param(b"", Kind.BAD_METADATA, id="empty")],
)
def test_without_a_list_the_queues_are_there_all_the_same(text: bytes | None, kind: Kind) -> None:
    files = folder()
    if text is None:
        files.unlink(f"{FOLDER}/nsqd.dat")
    else:
        put(files, "nsqd.dat", text)
    put_queue(files, "t:c", records(1))
    with Folder(files, FOLDER) as opened:
        assert contents(opened) == {"t": ({"c": [1]}, [])}
        assert list(opened.findings) == [Finding(kind, "nsqd.dat"), Finding(Kind.UNLISTED, "t:c")]


def test_the_list_of_an_nsqd_before_1_0_is_read_under_its_name() -> None:
    files = folder("t", channels=["c"])
    files.rename(f"{FOLDER}/nsqd.dat", f"{FOLDER}/nsqd.712.dat")
    with Folder(files, FOLDER) as opened:
        assert contents(opened) == {"t": ({"c": []}, [])}
        assert opened.findings == {}


def test_names_in_the_list_that_are_not_valid_are_left_out() -> None:
    files = folder("t", "no name", channels=["c", "", "d#ephemeral"])
    with Folder(files, FOLDER) as opened:
        assert contents(opened) == {"t": ({"c": []}, [])}
        assert [str(finding) for finding in opened.findings] == [
            "'' is listed, but no topic or channel can have this name: left out",
            "d#ephemeral is ephemeral, and listed all the same: left out",
            "'no name' is listed, but no topic or channel can have this name: left out",
        ]


@pytest.mark.parametrize(
    ("meta", "kind"),
    [pytest.param(None, Kind.NO_META, id="missing"), pytest.param(b"\0\0\0", Kind.BAD_META, id="zeros")],
)
def test_without_a_meta_file_a_queue_is_read_from_its_first_file(meta: bytes | None, kind: Kind) -> None:
    files = folder("t")
    put_queue(files, "t", records(1, 2), records(3), first=4, read_at=len(record(1)))
    if meta is None:
        files.unlink(f"{FOLDER}/t.diskqueue.meta.dat")
    else:
        put(files, "t.diskqueue.meta.dat", meta)
    with Folder(files, FOLDER) as opened:
        assert contents(opened) == {"t": ({}, [1, 2, 3])}
        assert list(opened.findings) == [Finding(kind, "t.diskqueue.meta.dat")]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param("t.diskqueue.000000.dat.bad", Kind.SET_ASIDE, id="set aside"),
        pytest.param("u.diskqueue.000000.dat.bad", Kind.SET_ASIDE, id="set aside, of a topic that is no more"),
        pytest.param("a b.diskqueue.000000.dat", Kind.FOREIGN, id="not a valid name"),
        pytest.param("t:c:d.diskqueue.000000.dat", Kind.FOREIGN, id="two separators"),
        pytest.param("e#ephemeral.diskqueue.000000.dat", Kind.EPHEMERAL, id="ephemeral topic"),
        pytest.param("t:e#ephemeral.diskqueue.meta.dat", Kind.EPHEMERAL, id="ephemeral channel"),
    ],
)
def test_files_that_are_not_read_are_told_of(name: str, kind: Kind) -> None:
    files = folder("t")
    put(files, name, record(1))
    with Folder(files, FOLDER) as opened:
        assert contents(opened) == {"t": ({}, [])}
        assert list(opened.findings) == [Finding(kind, name)]


def test_files_of_others_are_passed_over_in_silence() -> None:
    files = folder("t")
    for name in ("nsqd.dat.123.tmp", "t.diskqueue.meta.dat.42.tmp", "notes.txt", "nsqd.712.dat"):
        put(files, name, b"something")
    files.make_directory(f"{FOLDER}/u.diskqueue.000000.dat")
    put_meta(files, "deleted", 0, (3, 50), (3, 50))
    with Folder(files, FOLDER) as opened:
        assert contents(opened) == {"t": ({}, [])}
        assert opened.findings == {}


def test_a_queue_whose_files_are_all_lost_is_told_of() -> None:
    files = folder("t")
    put_meta(files, "t", 7, (2, 0), (3, 70))
    with Folder(files, FOLDER) as opened:
        assert contents(opened) == {"t": ({}, [])}
        assert list(opened.findings) == [
            Finding(Kind.GONE, "t.diskqueue.000002.dat", size=2),
            Finding(Kind.COUNT, "t.diskqueue.meta.dat", 7, 0),
        ]


def test_what_the_topic_still_holds_after_a_kill_comes_only_from_there() -> None:
    # given a topic that was killed after it had handed out messages, before its meta file said so
    files = folder("t", channels=["c"])
    put_queue(files, "t", records(2, 3, 4))
    put_queue(files, "t:c", records(1, 2, 3))
    # when the folder is read, then each message is there once
    with Folder(files, FOLDER) as opened:
        assert contents(opened) == {"t": ({"c": [1]}, [2, 3, 4])}


def test_a_folder_that_nsqd_runs_on_is_refused_and_nsqd_is_kept_off_meanwhile() -> None:
    # given a folder that is in use
    files = folder("t")
    lock = files.lock_directory(FOLDER)
    # when it is opened, then it is refused
    with pytest.raises(DataPathError, match="stop the nsqd"):
        Folder(files, FOLDER)
    # and once it is free, it is held until it is closed
    files.close(lock)
    with Folder(files, FOLDER), pytest.raises(BlockingIOError):
        files.lock_directory(FOLDER)
    files.close(files.lock_directory(FOLDER))


def test_a_folder_without_anything_of_nsqd_is_refused() -> None:
    files = MemoryFiles()
    files.make_directory(FOLDER)
    put(files, "notes.txt", b"")
    with pytest.raises(ImportFailed, match=r"holds neither nsqd\.dat nor queues"):
        Folder(files, FOLDER)
    with pytest.raises(DiskFailed, match="No such file or directory"):
        Folder(files, "/missing")
    assert files.opened() == []


def test_whatever_call_fails_the_error_is_a_typed_one_and_nothing_stays_open() -> None:
    # given a folder that is read by way of these calls
    beneath = folder("t", channels=["c"])
    put_queue(beneath, "t", records(1))
    put_queue(beneath, "t:c", records(2), records(3))
    whole = FailingFiles(beneath)
    with Folder(whole, FOLDER) as opened:
        contents(opened)
    for n, call in enumerate(whole.calls):
        # when the nth fails
        files = FailingFiles(beneath)
        fault = files.fail(errno.ENOMEM, skip=n)
        if call.method == "close":
            continue
        with pytest.raises(PenstockError), Folder(files, FOLDER) as opened:
            contents(opened)
        # then it says so
        assert fault.met == 1
        assert beneath.opened() == []


@pytest.mark.parametrize("kind", Kind)
def test_every_finding_is_a_sentence(kind: Kind) -> None:
    text = str(Finding(kind, "file", 12, 34))
    assert "file" in text
    assert "{" not in text
