"""What an original folder holds is in the data path: each message once, each channel where it stood."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import CorruptLog, DataPathError, ImportFailed
from penstock.log.data_path import DataPath
from penstock.log.disk import Disk
from penstock.log.files import write_whole
from penstock.log.topic_log import LogOptions
from penstock.log.transfer import ChannelCount, Summary, TopicCount, import_folder
from penstock.protocol.batch import records
from tests.kit import FailingFiles, MemoryFiles
from tests.unit.log.original.folders import FOLDER, START, put, put_queue, record

from .worlds import NODE, NOW, Channel, Topic, Topics, expected, new_files, of_data_path, state_of

if TYPE_CHECKING:
    from penstock.log.topic_log import TopicLog
    from tests.kit import Call

HELD = st.dictionaries(st.integers(0, 20), st.sampled_from([0, 0, 0, 1, 65535]), max_size=20)
CHANNELS = st.dictionaries(st.sampled_from(["a", "b", "c.d"]), st.builds(Channel, HELD, st.booleans()))
TOPIC = st.builds(Topic, CHANNELS, st.lists(st.integers(21, 30), unique=True), st.booleans())
TOPICS = st.dictionaries(st.sampled_from(["t", "..", "nsqd.dat"]), TOPIC, max_size=3)


def imported(files: MemoryFiles, **options: int) -> Summary:
    return import_folder(FOLDER, NODE, now=NOW, files=files, options=LogOptions(**options), boot="boot")


def with_log(files: MemoryFiles, name: str = "t") -> tuple[DataPath, TopicLog]:
    node = DataPath(NODE, disk=Disk(files), boot="boot")
    return node, next(log for log in node.logs if log.birth.name == name)


@given(TOPICS)
def test_everything_is_there_and_nothing_else(topics: Topics) -> None:
    # given any folder
    files = new_files(topics)
    before = {path: data for path, data in files.tree().items() if path.startswith(FOLDER)}
    # when it is imported
    summary = imported(files, max_bytes_per_file=300)
    # then a start finds what the folder held
    assert of_data_path(files) == expected(topics)
    assert summary.notes == []
    assert summary.messages == sum(
        len({*topic.own, *(n for channel in topic.channels.values() for n in channel.held)})
        for topic in topics.values()
    )
    # and the folder is as it was, and nothing else is left
    assert {path: data for path, data in files.tree().items() if path.startswith(FOLDER)} == before
    assert {path.split("/")[1] for path in files.tree()} == {FOLDER[1:], NODE[1:]}
    assert files.opened() == []


def test_a_topic_and_its_channels_become_a_log_and_cursors() -> None:
    # given a topic with a channel that has everything, one that is behind with two in flight, and one that is done
    channels = {
        "all": Channel(dict.fromkeys(range(1, 9), 0)),
        "behind": Channel({2: 3, 4: 1, 6: 0, 7: 0, 8: 0}, paused=True),
        "done": Channel(),
    }
    files = new_files({"t": Topic(channels, own=[11, 10])})
    # when it is imported
    summary = imported(files)
    # then all is told,
    assert summary == Summary(
        {
            "t": TopicCount(
                10,
                2,
                channels={"all": ChannelCount(8), "behind": ChannelCount(5, 4, paused=True), "done": ChannelCount()},
            )
        }
    )
    # each message stands once in the log, by time, those that the topic still had behind R in the order they had,
    node, log = with_log(files)
    block = log.read(0, 1 << 20)
    assert block is not None
    found = list(records(block.data))
    assert [record.timestamp - START for record in found] == [1, 2, 3, 4, 5, 6, 7, 8, 11, 10]
    assert [int(record.id, 16) - log.birth.base for record in found] == list(range(10))
    topic = state_of(node).topic("t")
    assert topic is not None
    assert (topic.routed, topic.following) == (8, True)
    # and a channel's cursor stands where all the rest is to be delivered
    state = state_of(node)
    cursors = {name: state.channels[number].cursor for name, number in topic.channels.items()}
    assert cursors == {"all": 0, "behind": 5, "done": 8}
    behind = state.channels[topic.channels["behind"]]
    assert [(message.offset, message.attempts) for message in behind.unfinished] == [(1, 3), (3, 1)]


@pytest.mark.parametrize(
    ("topic", "follows"),
    [
        pytest.param(Topic({"c": Channel()}), True, id="a channel"),
        pytest.param(Topic({"c": Channel()}, paused=True), False, id="a channel, paused"),
        pytest.param(Topic(), False, id="no channel"),
    ],
)
def test_r_follows_where_the_original_would_hand_messages_out(topic: Topic, follows: bool) -> None:
    files = new_files({"t": topic})
    imported(files)
    found = state_of(DataPath(NODE, disk=Disk(files), boot="boot")).topic("t")
    assert found is not None
    assert found.following is follows


def test_what_is_odd_in_the_folder_is_told() -> None:
    # given a folder after a kill, whose list names an ephemeral channel
    files = new_files({"t": Topic({"c": Channel({1: 0, 2: 0})}, own=[2, 3])})
    listed = {"topics": [{"name": "t", "channels": [{"name": "c"}, {"name": "d#ephemeral"}]}], "version": "1.3.0"}
    put(files, "nsqd.dat", json.dumps(listed).encode())
    put_queue(files, "t", record(2) + record(3) + b"torn")
    # when it is imported
    summary = imported(files)
    # then the notes say so
    assert summary.notes == [
        "d#ephemeral is ephemeral, and listed all the same: left out",
        "t.diskqueue.000000.dat: the last record, at 78, is not whole: its 4 bytes are left out",
        "t:c: there twice, or in the topic's queue as well: 1",
    ]
    assert summary.topics["t"] == TopicCount(3, 2, channels={"c": ChannelCount(1)})


@pytest.mark.parametrize("size", [0, 1, (64 << 10) - 30, (64 << 10) - 29, 300_000])
def test_bodies_of_any_size_come_through(size: int) -> None:
    # given messages around one that fills a batch, or more than one
    files = new_files({"t": Topic()})
    put_queue(files, "t", record(1) + record(2, bytes(size)) + record(3))
    # when they are imported into small files
    imported(files, max_bytes_per_file=1000)
    # then all are there
    _, log = with_log(files)
    found: list[bytes] = []
    while block := log.read(len(found), 1):
        found += [record.body for record in records(block.data)]
    assert found == [b"body of 1", bytes(size), b"body of 3"]


def test_how_far_it_is_can_be_followed() -> None:
    # given two topics, one of more than a batch
    files = new_files({"t": Topic(), "u": Topic(own=[1])})
    put_queue(files, "t", b"".join(record(n, bytes(1000)) for n in range(200)))
    told: list[tuple[str, int]] = []
    # when they are imported
    import_folder(FOLDER, NODE, now=NOW, files=files, boot="boot", progress=lambda *how: told.append(how))
    # then each topic is named, also while nothing comes out yet, and the number rises
    assert [name for name, _ in told] == ["t: sorting", *["t"] * (len(told) - 2), "u: sorting"]
    assert len(told) > 4
    assert [count for _, count in told] == sorted(count for _, count in told)
    assert told[-1][1] == 200


# --- what is refused


def test_a_source_that_is_a_data_path_is_refused() -> None:
    files = new_files({"t": Topic(own=[1])})
    imported(files)
    before = files.tree()
    with pytest.raises(ImportFailed, match="is a data path of Penstock already"):
        import_folder(NODE, "/other", now=NOW, files=files, boot="boot")
    assert files.tree() == before


@pytest.mark.parametrize("target", [FOLDER, f"{FOLDER}/new", f"{FOLDER}/."])
def test_nothing_is_made_in_the_source(target: str) -> None:
    files = new_files({"t": Topic(own=[1])})
    before = files.tree()
    with pytest.raises(DataPathError, match="lies in /nsqd, in which nothing is to be changed"):
        import_folder(FOLDER, target, now=NOW, files=files, boot="boot")
    assert files.tree() == before


def test_a_data_path_is_not_imported_into_again() -> None:
    files = new_files({"t": Topic(own=[1])})
    imported(files)
    before = files.tree()
    with pytest.raises(DataPathError, match="is a data path already"):
        imported(files)
    assert files.tree() == before


# --- what is read back


@pytest.mark.parametrize("ending", ["/importing/topics/*.log", "/importing/journal/*.log"], ids=["log", "journal"])
def test_what_does_not_read_back_is_not_published(ending: str) -> None:
    # given a device that spoils what was written, once the data path is closed for the first time
    beneath = new_files({"t": Topic({"c": Channel({1: 1, 2: 0})}, own=[3])})
    files = FailingFiles(beneath)
    closed = 0

    def before(call: Call) -> None:
        nonlocal closed
        closed += call == ("rename", (f"{NODE}/importing/node.json.partial", f"{NODE}/importing/node.json"))
        if closed == 2:
            closed += 1
            spoil(beneath, NODE + ending)

    files.before = before
    # when it is read back, then it is found out, and all is taken away
    with pytest.raises((CorruptLog, ImportFailed)):
        import_folder(FOLDER, NODE, now=NOW, files=files, boot="boot")
    assert closed > 2
    assert not beneath.exists(NODE)
    assert beneath.opened() == []


def spoil(files: MemoryFiles, pattern: str) -> None:
    """Change the last byte of the first such file."""
    path = next(path for path in files.tree() if fnmatchcase(path, pattern))
    fd = files.open(path)
    write_whole(files, fd, b"\xff", files.size(fd) - 1)
    files.close(fd)
