"""What a data path has to deliver is in the folder, in the queues of those who have to get it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from penstock.errors import DataPathError
from penstock.log import entries as e
from penstock.log.chain import Hole
from penstock.log.data_path import DataPath
from penstock.log.disk import Disk
from penstock.log.files import write_whole
from penstock.log.journal import Journal
from penstock.log.original import Folder
from penstock.log.topic_log import LogOptions, TopicLog
from penstock.log.transfer import ChannelCount, Summary, TopicCount, export_folder, import_folder
from tests.kit import MemoryFiles
from tests.unit.log.original.folders import FOLDER

from .test_importing import TOPICS
from .worlds import EXPORT, NODE, NOW, Channel, Topic, Topics, expected, new_files, of_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.log.entries import Entry

T = 1_000_000_000_000_000_000  # when what was published at 0 was


@contextmanager
def node(files: MemoryFiles, *, clean: bool = True, **options: int) -> Iterator[DataPath]:
    """A data path to put things into, closed in order or left as in a kill."""
    if not files.exists(NODE):
        files.make_directory(NODE)
    opened = DataPath(NODE, disk=Disk(files), options=LogOptions(**options), boot="boot")
    yield opened
    if clean:
        opened.close()
    else:
        opened.abandon()


def journal(opened: DataPath, entries: Sequence[Entry]) -> None:
    each = Journal(opened.disk, f"{NODE}/journal")
    each.append(entries, T)
    while work := each.flush_work():
        work()


def made(log: TopicLog, number: int = 0, *, routed: int = 0, follows: bool = True, when: int = T) -> list[Entry]:
    return [
        e.TopicCreated(number, log.birth.name, log.birth.incarnation),
        e.Routed(number, routed, follows, when),
    ]


def put(log: TopicLog, *numbers: int) -> None:
    """One batch each, of a message that was published at its number."""
    for n in numbers:
        log.append([b"%d" % n], T + n)


def queues(files: MemoryFiles) -> dict[str, list[tuple[int, int]]]:
    """(message, attempts) in the order in which nsqd finds them; the timestamps and ids are checked to be its own."""
    found: dict[str, list[tuple[int, int]]] = {}
    ids: dict[bytes, bytes] = {}
    with Folder(files, EXPORT) as folder:
        for topic in folder.topics.values():
            each = {topic.name: topic.queue}
            for name, channel in topic.channels.items():
                each[f"{topic.name}:{name}"] = channel.queues[0] if channel.queues else None
            for name, queue in each.items():
                found[name] = []
                for message in queue.messages() if queue else ():
                    assert message.timestamp == T + int(message.body)
                    assert ids.setdefault(message.id, message.body) == message.body
                    found[name].append((int(message.body), message.attempts))
        assert folder.findings == {}
    return found


def exported(files: MemoryFiles, boot: str = "boot") -> Summary:
    summary = export_folder(NODE, EXPORT, files=files, boot=boot)
    assert files.opened() == []
    return summary


def of_node(files: MemoryFiles) -> dict[str, bytes | None]:
    return {path: data for path, data in files.tree().items() if path.startswith(NODE)}


@given(TOPICS)
def test_what_was_imported_comes_back(topics: Topics) -> None:
    # given a data path that was made from any folder
    files = new_files(topics)
    import_folder(FOLDER, NODE, now=NOW, files=files, boot="boot")
    before = of_node(files)
    # when it is exported
    summary = exported(files)
    # then everybody gets the same, with the same attempts
    assert of_folder(files, EXPORT) == expected(topics)
    assert summary.notes == []
    # and the data path is as it was
    assert of_node(files) == before


def test_a_channel_gets_its_unfinished_messages_first_and_then_the_rest() -> None:
    # given a log of small segments, and a channel with messages in flight, ready again, and requeued with a delay
    files = MemoryFiles()
    with node(files, max_bytes_per_file=200) as opened:
        log = opened.create("t")
        put(log, *range(10))
        unfinished = e.pack_messages([(1, 3, e.IN_FLIGHT), (2, 1, e.READY), (5, 7, 1_800_000_000_000)])
        journal(
            opened,
            [
                *made(log),
                e.ChannelCreated(0, 0, "c", 0, T),
                e.ChannelPaused(0, True),
                e.Progress(0, 0, 6, b"", unfinished),
                e.ChannelCreated(1, 0, "d", 9, T),
            ],
        )
    # when it is exported
    summary = exported(files)
    # then each channel's queue has them with their attempts, and the topic's has none
    assert queues(files) == {"t": [], "t:c": [(1, 3), (2, 1), (5, 7), (6, 0), (7, 0), (8, 0), (9, 0)], "t:d": [(9, 0)]}
    assert summary == Summary(
        {"t": TopicCount(8, 0, channels={"c": ChannelCount(7, 11, paused=True), "d": ChannelCount(1)})},
        ["t: requeued with a delay by c, and written as due: 1"],
    )
    with Folder(files, EXPORT) as folder:
        assert {c.name: c.paused for c in folder.topics["t"].channels.values()} == {"c": True, "d": False}
        (queue,) = folder.topics["t"].channels["c"].queues
        assert [int(message.id, 16) - log.birth.base for message in queue.messages()] == [1, 2, 5, 6, 7, 8, 9]


@pytest.mark.parametrize(
    ("follows", "own", "channel"),
    [
        pytest.param(True, [], [4, 5, 6, 7, 8, 9], id="handed out"),
        pytest.param(False, [7, 8, 9], [4, 5, 6], id="waits"),
    ],
)
def test_what_is_above_r_is_the_topics(follows: bool, own: list[int], channel: list[int]) -> None:
    # given a topic whose R follows, or stands since it was paused
    files = MemoryFiles()
    with node(files) as opened:
        log = opened.create("t")
        put(log, *range(10))
        paused = e.TopicPaused(0, not follows)
        journal(opened, [*made(log, routed=7, follows=follows), paused, e.ChannelCreated(0, 0, "c", 4, T)])
    summary = exported(files)
    assert queues(files) == {"t": [(n, 0) for n in own], "t:c": [(n, 0) for n in channel]}
    assert summary.topics["t"].waiting == len(own)
    with Folder(files, EXPORT) as folder:
        assert folder.topics["t"].paused is not follows


def test_holes_are_stepped_over() -> None:
    # given a topic that was emptied twice, inside of batches, and one hole that touches the end
    files = MemoryFiles()
    with node(files) as opened:
        log = opened.create("t")
        put(log, *range(12))
        holes = [Hole(2, 4, "emptied"), Hole(5, 6, "emptied"), Hole(10, 12, "emptied")]
        journal(
            opened,
            [
                *made(log, routed=8, follows=False),
                e.Holes(0, 0, 12, e.pack_holes(holes)),
                e.ChannelCreated(0, 0, "c", 3, T),
            ],
        )
    summary = exported(files)
    assert queues(files) == {"t": [(8, 0), (9, 0)], "t:c": [(4, 0), (6, 0), (7, 0)]}
    assert summary.notes == []


def test_stragglers_that_are_held_are_there() -> None:
    # given a topic whose first segments are deleted, and two of their messages were held for a channel
    files = MemoryFiles()
    with node(files, max_bytes_per_file=200) as opened:
        log = opened.create("t")
        put(log, *range(10))
        log.hold([1, 3], T)
        log.delete_below(8)
        while work := log.work():
            work()
        unfinished = e.pack_messages([(1, 2, e.READY), (2, 1, e.READY), (3, 1, e.READY)])
        journal(opened, [*made(log), e.ChannelCreated(0, 0, "c", 0, T), e.Progress(0, 0, 9, b"", unfinished)])
        assert log.earliest > 3
    # when it is exported
    summary = exported(files)
    # then they are there, and what is lost is told
    assert queues(files) == {"t": [], "t:c": [(1, 2), (3, 1), (9, 0)]}
    assert summary.notes == ["t: not finished by c, and in the log no more: 1"]


# --- what the original cannot hold


@pytest.mark.parametrize(
    ("topic", "channels", "found"),
    [
        pytest.param({"follows": False}, {}, {"t": [1, 5, 9]}, id="no channel: the topic's"),
        pytest.param({"follows": False}, {"c": 0}, {"t": [1, 5, 9]}, id="R stands: the topic's"),
        pytest.param({"when": T}, {"c": 0, "d": 0}, {"t:c": [1, 5, 9], "t:d": [1, 5, 9]}, id="all were there"),
        pytest.param({"when": T}, {"c": 0, "d": 4}, {"t:c": [1, 5, 9], "t:d": [5, 9]}, id="one came later"),
        pytest.param({"when": T}, {"c": 4}, {"t:c": [5, 9]}, id="emptied after the first"),
        pytest.param({"when": T + 7}, {"c": 0, "d": 7}, {"t:c": [1, 5, 9], "t:d": [9]}, id="another came later"),
    ],
)
def test_deferred_messages_are_due_for_those_who_should_get_them(
    topic: dict[str, int], channels: dict[str, int], found: dict[str, list[int]]
) -> None:
    # given messages published at 1, 5 and 9, one of which is not due for years, and channels that came at some time
    files = MemoryFiles()
    with node(files) as opened:
        log = opened.create("t")
        for n, due in ((1, 1), (5, 10**8), (9, 60)):
            log.timetable.put([b"%d" % n], T + n + due * 10**9, T + n)
        entries = made(log, **topic)  # type: ignore[arg-type]
        entries += [e.ChannelCreated(n, 0, name, 0, T + since) for n, (name, since) in enumerate(channels.items())]
        journal(opened, entries)
    # when they are exported
    summary = exported(files)
    # then they are in these queues, with new ids
    assert {name: sorted(each) for name, each in queues(files).items() if each} == {
        name: [(n, 0) for n in each] for name, each in found.items()
    }
    assert summary.notes[0] == "t: deferred, and written as due: 3"
    lost = 3 - len({n for each in found.values() for n in each})
    assert summary.notes[1:] == [
        f"t: of them for no channel, all being made or emptied after the publish: {lost}"
    ] * bool(lost)


def test_a_deferred_message_that_was_moved_is_there_once_also_after_a_kill() -> None:
    # given two deferred messages of which one was moved into the log right before a kill
    files = MemoryFiles()
    with node(files, clean=False) as opened:
        log = opened.create("t")
        log.timetable.put([b"1"], T + 1, T + 1)
        log.timetable.put([b"2"], T + 10**18, T + 2)
        moved = log.timetable.due(T + 2)
        assert moved is not None
        log.put_moved(moved.source, moved.places, moved.size)
        log.write(T + 2, flags=3, key=moved.key)
        journal(opened, [*made(log), e.ChannelCreated(0, 0, "c", 0, T)])
    killed = files.copy()
    # when it is exported
    summary = exported(files)
    # then each is there once
    assert queues(files) == {"t": [], "t:c": [(1, 0), (2, 0)]}
    assert summary.notes == ["t: deferred, and written as due: 1"]
    # and what a start needs to know of it is still there
    assert of_node(files) == of_node(killed)


def test_readers_and_ephemeral_channels_are_left_out_and_told() -> None:
    files = MemoryFiles()
    with node(files) as opened:
        log = opened.create("t")
        put(log, 0, 1)
        journal(
            opened,
            [
                *made(log),
                e.ChannelCreated(0, 0, "c", 1, T),
                e.ChannelCreated(1, 0, "d#ephemeral", 0, T),
                e.ReaderMoved(0, "spark", 1, T, False),
            ],
        )
    summary = exported(files)
    assert queues(files) == {"t": [], "t:c": [(1, 0)]}
    assert summary.notes == [
        "t: d#ephemeral is ephemeral: left out",
        "t: the reader spark, at offset 1, is left out",
    ]


def test_a_message_that_nsqd_would_refuse_is_told_of() -> None:
    files = MemoryFiles()
    with node(files) as opened:
        log = opened.create("t")
        log.append([bytes((1 << 20) + 1)], T)
        journal(opened, made(log, follows=False))
    assert exported(files).notes == ["the largest message has 1048577 bytes: nsqd needs --max-msg-size to be as large"]


# --- logs and journals that do not fit each other, or are damaged


def test_a_log_of_another_life_is_left_out() -> None:
    # given a topic that was deleted and made again, whose old log is still there, and one of which only the log is left
    files = MemoryFiles()
    with node(files) as opened:
        old, log, gone, never = (opened.create(name) for name in ("t", "t", "u", "v"))
        put(old, 1)
        put(log, 2)
        put(gone, 3)
        journal(opened, made(log, follows=False))
        assert never.end == 0
    summary = exported(files)
    assert queues(files) == {"t": [(2, 0)]}
    assert sorted(summary.notes) == sorted(
        f"{each.directory} is of a topic that was deleted: left out" for each in (old, gone)
    )


def test_without_a_journal_nothing_is_lost() -> None:
    # given a data path that has lost its journal
    files = MemoryFiles()
    with node(files) as opened:
        put(opened.create("t"), 1, 2)
    # when it is exported, then all messages are the topic's
    summary = exported(files)
    assert queues(files) == {"t": [(1, 0), (2, 0)]}
    assert summary.notes == ["t: the journal does not know it: all that is there is written as given to no channel"]


def test_damage_costs_what_is_damaged_and_is_told() -> None:
    # given a log with a bad byte in the third of five batches
    files = MemoryFiles()
    with node(files) as opened:
        log = opened.create("t")
        put(log, *range(5))
        path = log.chain.segments[0].path
        journal(opened, [*made(log), e.ChannelCreated(0, 0, "c", 0, T)])
    fd = files.open(path)
    write_whole(files, fd, b"\xff", files.size(fd) // 2)
    files.close(fd)
    # when it is exported
    summary = exported(files)
    # then the other four are there
    assert queues(files) == {"t": [], "t:c": [(0, 0), (1, 0), (3, 0), (4, 0)]}
    assert summary.notes == [
        "t: there is nothing at offset 2: damaged",
        f"{path}: 71 bytes at 142 are damaged, and left out",
    ]


def test_what_a_power_cut_took_is_told() -> None:
    # given a node that was not closed, on a machine that has started anew
    files = MemoryFiles()
    with node(files, clean=False) as opened:
        log = opened.create("t")
        put(log, 0, 1)
        journal(opened, [*made(log), e.ChannelCreated(0, 0, "c", 0, T)])
    # when it is exported
    summary = exported(files, boot="another")
    # then what is there is there, and what may have been is told
    assert queues(files) == {"t": [], "t:c": [(0, 0), (1, 0)]}
    assert summary.notes == [
        "t: went on after a power cut or damage: what there may have been from offset 2 on is lost"
    ]


# --- what is refused


def test_a_folder_that_is_no_data_path_is_refused_and_stays_as_it_is() -> None:
    files = new_files({"t": Topic({"c": Channel({1: 0})})})
    before = files.tree()
    with pytest.raises(DataPathError, match="is no data path of Penstock"):
        export_folder(FOLDER, EXPORT, files=files, boot="boot")
    assert files.tree() == before


def test_a_node_that_runs_is_refused() -> None:
    files = MemoryFiles()
    with node(files):
        before = files.tree()
        with pytest.raises(DataPathError, match="in use by another process"):
            export_folder(NODE, EXPORT, files=files, boot="boot")
        assert files.tree() == before


def test_nothing_is_made_in_the_data_path_or_in_a_folder_that_is_not_empty() -> None:
    files = MemoryFiles()
    with node(files):
        pass
    before = files.tree()
    with pytest.raises(DataPathError, match="lies in /node"):
        export_folder(NODE, f"{NODE}/export", files=files, boot="boot")
    files.make_directory(EXPORT)
    files.make_directory(f"{EXPORT}/something")
    with pytest.raises(DataPathError, match="is not empty"):
        export_folder(NODE, EXPORT, files=files, boot="boot")
    assert of_node(files) == before
    assert files.opened() == []
