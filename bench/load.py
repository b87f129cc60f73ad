"""What the rows measure with: how much of it, where, and the messages."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.log.birth import born
from penstock.log.disk import Disk
from penstock.log.topic_log import LogOptions, TopicLog
from penstock.protocol.batch import HEADER, RECORD

if TYPE_CHECKING:
    from collections.abc import Iterator

COUNT: Final = 200  # messages in a batch
SIZE: Final = 200  # bytes of a message
BATCH: Final = HEADER + COUNT * (RECORD + SIZE)  # bytes of a batch
NOW: Final = 1_750_000_000_000_000_000
NEVER: Final = 1 << 62  # messages after which NSQ's rule would flush

_random = random.Random(1)
BODIES: Final = [_random.randbytes(SIZE) for _ in range(COUNT)]


@dataclass(frozen=True)
class Load:
    """How much of everything."""

    directory: str  # where files may be made
    rounds: int = 7
    batches: int = 4_000  # appended in a round
    flushes: int = 200
    reads: int = 20_000
    topic: int = 1 << 30  # bytes of the topic that is recovered
    topics: int = 10_000
    large: int = 4 << 30  # bytes of the topic whose memory is looked at
    seconds: float = 2.0  # of each load on a server
    messages: int = 1_000_000  # that wait for consumers


def quick(directory: str) -> Load:
    """Enough to see that every row still runs."""
    return Load(
        directory,
        rounds=1,
        batches=20,
        flushes=2,
        reads=20,
        topic=1 << 20,
        topics=20,
        large=4 << 20,
        seconds=0.1,
        messages=1_000,
    )


@contextmanager
def folder(load: Load) -> Iterator[str]:
    """An empty one, gone afterwards."""
    path = tempfile.mkdtemp(prefix="penstock-bench-", dir=load.directory)
    try:
        yield path
    finally:
        shutil.rmtree(path)


def new_log(directory: str, **options: int) -> TopicLog:
    birth = born("bench")
    return TopicLog.create(Disk(), f"{directory}/{birth.folder}", birth, LogOptions(**{"sync_every": NEVER, **options}))


def fill(log: TopicLog, size: int, bodies: list[bytes] | None = None) -> None:
    """Append until the log has about `size` bytes, flushing as it goes; at least one batch."""
    flushed = 0
    while log.bytes < size or not log.end:
        log.append(BODIES if bodies is None else bodies, NOW)
        if log.bytes - flushed > 64 << 20:
            flush(log)
            flushed = log.bytes
    flush(log)


def flush(log: TopicLog) -> None:
    while work := log.work():
        work()


def room(directory: str) -> int:
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize
