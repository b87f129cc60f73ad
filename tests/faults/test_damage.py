"""Bytes that go bad anywhere in a data path: only what stood there is lost, nothing wrong is read, and it goes on."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from penstock.errors import PenstockError
from penstock.log.data_path import JOURNAL, NODE, DataPath
from penstock.log.disk import Disk
from penstock.log.journal import Journal
from penstock.log.topic_log import LogOptions, TopicLog
from penstock.protocol.batch import header, records
from tests.kit import MemoryFiles

from .history import PATH, History, small_world, waiting, work_off
from .known import Message
from .rules import messages

TRUTH = ".log"  # what ends so holds messages; what does not says nothing that they do not say


class Found:
    """All that a start finds."""

    def __init__(self, files: MemoryFiles) -> None:
        self.data = DataPath(PATH, disk=Disk(files), options=LogOptions(800), boot="1")
        self.messages: dict[tuple[str, int], Message] = {}
        self.waiting: set[tuple[str, bytes]] = set()
        self.earliest = {log.birth.folder: log.earliest for log in self.data.logs}
        for log in self.data.logs:
            work_off(log)
            self.messages |= self.read(log)
            self.waiting |= {(log.birth.folder, body) for body in waiting(log)}

    def read(self, log: TopicLog) -> dict[tuple[str, int], Message]:
        return {(log.birth.folder, offset): message for offset, message in messages(log).items()}


def lived(seed: int) -> MemoryFiles:
    """What a history left; sometimes its process was stopped in order."""
    with small_world(seed):
        history = History(seed)
        history.live(50)
        while history.pending:
            history.run_work()
            history.finish_work()
        history.boot = 1
        if seed % 2:
            history.data.close()
        return history.disk.now.kill().copy()


def hurt(files: MemoryFiles, rng: random.Random, *, stopped: bool) -> tuple[str, int, int]:
    """Make some bytes of a file other ones, or cut it: which file, and from where to where.

    Of a log that was not stopped nobody knows how far it had come.
    """
    tree = files.tree()
    path = rng.choice(sorted(path for path, data in tree.items() if data and not path.endswith(NODE)))
    data = tree[path] or b""
    start = rng.randrange(len(data))
    stop = min(len(data), start + rng.choice((1, 1, 1, 2, 40, 300)))
    bad = rng.choice((bytes(stop - start), rng.randbytes(stop - start), bytes([data[start] ^ 1 << rng.randrange(8)])))
    stop = start + len(bad)
    fd = files.open(path)
    if (stopped or not path.endswith(TRUTH)) and rng.random() < 0.2:
        files.truncate(fd, start)
        stop = len(data)
    else:
        files.write(fd, bad, start)
    files.close(fd)
    return path, start, stop


def touched(path: str, data: bytes, start: int, stop: int) -> Iterator[bytes]:
    """The bodies of what stood in the batches there."""
    at = 0
    while path.endswith(TRUTH) and JOURNAL not in path and at < len(data):
        try:
            head = header(data, at)
        except ValueError:  # the rest was never whole
            return
        if at < stop and head.end > start:
            yield from (record.body for record in records(data[at : head.end]))
        at = head.end


def check(before: MemoryFiles, rng: random.Random, *, stopped: bool) -> None:
    whole = Found(before.copy())
    files = before.copy()
    path, start, stop = hurt(files, rng, stopped=stopped)
    told = f"{path} from {start} to {stop} is bad"
    folder = path.removeprefix(f"{PATH}/topics/").partition("/")[0]
    lost = {(folder, body) for body in touched(path, before.tree()[path] or b"", start, stop)}
    # when a process starts
    try:
        found = Found(files)
    except PenstockError as error:
        raise AssertionError(f"{told}, and nothing starts") from error
    # then nothing wrong is read, and nothing lacks but what stood there
    strange = [at for at, message in found.messages.items() if whole.messages.get(at) != message]
    assert all(offset < whole.earliest[name] for name, offset in strange), told  # deleted, its file not yet
    lacking = {(at[0], message.body) for at, message in whole.messages.items() if at not in found.messages}
    here = {(at[0], message.body) for at, message in found.messages.items()} | found.waiting
    assert lacking | (whole.waiting - here) <= lost, told
    assert len(found.data.logs) == len(whole.data.logs), told
    # and it goes on where nobody saw an offset
    for log in found.data.logs:
        seen = [offset for name, offset in whole.messages if name == log.birth.folder]
        first = log.append([b"after"], 2 * 10**18)
        assert first > max(seen, default=-1), told
        found.messages |= {at: message for at, message in found.read(log).items() if at[1] >= first}
    list(Journal(found.data.disk, f"{PATH}/{JOURNAL}").replay())
    found.data.abandon()
    # and the next start finds the same
    assert Found(files).messages == found.messages, told


def damage(seed: int, times: int) -> None:
    before = lived(seed)
    rng = random.Random(seed)
    for _ in range(times):
        check(before, rng, stopped=seed % 2 == 1)


@pytest.mark.parametrize("seed", range(6))
def test_wherever_bytes_go_bad_only_what_stood_there_is_lost(seed: int) -> None:
    damage(seed, 30)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6, 206))
def test_wherever_bytes_of_many_histories_go_bad_only_what_stood_there_is_lost(seed: int) -> None:
    damage(seed, 100)
