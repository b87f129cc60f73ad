"""Small original folders and data paths, and what is in them as a flat table: the two are compared."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TypeAlias

from penstock.log.data_path import DataPath
from penstock.log.disk import Disk
from penstock.log.entries import Message
from penstock.log.files import Files
from penstock.log.journal import Journal
from penstock.log.original import Folder
from penstock.log.state import NodeState
from penstock.log.topic_log import TopicLog
from penstock.protocol.batch import records
from tests.kit import MemoryFiles
from tests.unit.log.original.folders import FOLDER, START, put, put_queue, record

NODE = "/node"
EXPORT = "/export"
NOW = 1_800_000_000_000_000_000

Waiting: TypeAlias = dict[bytes, tuple[int, int]]
"""Body -> timestamp and attempts, of all that somebody is going to get."""


@dataclass
class Channel:
    """Which messages it holds, with the attempts each took."""

    held: dict[int, int] = field(default_factory=dict)
    paused: bool = False


@dataclass
class Topic:
    channels: dict[str, Channel] = field(default_factory=dict)
    own: list[int] = field(default_factory=list)
    paused: bool = False


Topics: TypeAlias = dict[str, Topic]


def make_folder(files: Files, topics: Topics) -> None:
    """As nsqd leaves it; channels' queues in an order of their own, in two files."""
    files.make_directory(FOLDER)
    listed = [
        {
            "name": name,
            "paused": topic.paused,
            "channels": [{"name": channel, "paused": each.paused} for channel, each in topic.channels.items()],
        }
        for name, topic in topics.items()
    ]
    put(files, "nsqd.dat", json.dumps({"topics": listed, "version": "1.3.0"}).encode())
    for name, topic in topics.items():
        if topic.own:
            put_queue(files, name, b"".join(map(record, topic.own)))
        for channel, each in topic.channels.items():
            found = [record(n, attempts=attempts) for n, attempts in each.held.items()]
            half = len(found) // 2
            if found:
                put_queue(files, f"{name}:{channel}", b"".join(found[half:]), b"".join(found[:half]))


def expected(topics: Topics) -> dict[str, object]:
    """What `of_data_path` and `of_folder` have to say of it: once R follows, what is the topic's is the channels'."""
    told: dict[str, object] = {}
    for name, topic in topics.items():
        told[name] = topic.paused
        own: Waiting = {b"body of %d" % n: (START + n, 0) for n in topic.own}
        follows = topic.channels and not topic.paused
        told[f"{name}, waiting"] = {} if follows else own
        for channel, each in topic.channels.items():
            held: Waiting = {b"body of %d" % n: (START + n, attempts) for n, attempts in each.held.items()}
            told[f"{name}:{channel}"] = (each.paused, held | own if follows else held)
    return told


def of_folder(files: Files, folder: str = FOLDER) -> dict[str, object]:
    told: dict[str, object] = {}
    with Folder(files, folder) as opened:
        for topic in opened.topics.values():
            told[topic.name] = topic.paused
            own: Waiting = {}
            channels: dict[str, Waiting] = {name: {} for name in topic.channels}
            for message in topic.unfinished("/scratch"):
                for channel, attempts in message.attempts.items():
                    channels[channel][message.body] = (message.timestamp, attempts)
            for waiting in topic.unrouted():
                own[waiting.body] = (waiting.timestamp, waiting.attempts)
            follows = bool(channels) and not topic.paused
            told[f"{topic.name}, waiting"] = {} if follows else own
            for name, held in channels.items():
                told[f"{topic.name}:{name}"] = (topic.channels[name].paused, held | own if follows else held)
        assert opened.findings == {}
    return told


def of_data_path(files: Files, path: str = NODE, boot: str = "boot") -> dict[str, object]:
    """As a start finds it: from the journal and the logs."""
    told: dict[str, object] = {}
    node = DataPath(path, disk=Disk(files), boot=boot)
    try:
        state = state_of(node)
        for log in node.logs:
            topic = state.topic(log.birth.name)
            assert topic is not None
            assert topic.incarnation == log.birth.incarnation
            told[topic.name] = topic.paused
            routed = log.committed if topic.following else topic.routed
            told[f"{topic.name}, waiting"] = _read(log, range(routed, log.committed))
            for name, number in topic.channels.items():
                channel = state.channels[number]
                held = _read(log, range(channel.cursor, routed), channel.unfinished)
                told[f"{topic.name}:{name}"] = (channel.paused, held)
        assert node.disk.damages == []
    finally:
        node.abandon()
    return told


def state_of(node: DataPath) -> NodeState:
    state = NodeState()
    state.apply_all(Journal(node.disk, f"{node.path}/journal").replay())
    return state


def _read(log: TopicLog, offsets: range, unfinished: object = ()) -> Waiting:
    wanted = dict.fromkeys(offsets, 0)
    assert hasattr(unfinished, "__iter__")
    wanted |= {message.offset: message.attempts for message in unfinished if isinstance(message, Message)}
    found: Waiting = {}
    for offset, attempts in wanted.items():
        block = log.read(offset, 1)
        assert block is not None
        each = next(each for each in records(block.data) if each.offset == offset)
        assert each.id == b"%016x" % (log.birth.base + offset)
        assert each.attempts == 0
        found[each.body] = (each.timestamp, attempts)
    return found


def new_files(topics: Topics) -> MemoryFiles:
    files = MemoryFiles()
    make_folder(files, topics)
    return files
