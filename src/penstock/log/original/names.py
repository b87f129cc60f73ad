"""How the original names the files of its queues. Knows names; opens nothing.

    <queue>.diskqueue.000000.dat        records; the number counts up, six digits or more
    <queue>.diskqueue.meta.dat          see meta.py
    <queue>.diskqueue.000000.dat.bad    set aside by nsqd when it could not read on

<queue> is a topic's name, or `topic:channel` (`topic;channel` where nsqd ran on Windows). A name may hold dots and even
`.diskqueue.000000.dat`, so that a file name is read from its end.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from penstock.protocol.names import is_valid

METADATA: Final = "nsqd.dat"

_FILE: Final = re.compile(r"(.+)\.diskqueue\.(?:(meta)|([0-9]{6,18}))\.dat(\.bad)?", re.DOTALL)
_OLD_METADATA: Final = re.compile(r"nsqd\.[0-9]+\.dat")
_SEPARATOR: Final = re.compile("[:;]")


class FileName(NamedTuple):
    """One file of a queue; the meta file has no number."""

    queue: str
    number: int | None
    bad: bool


class QueueName(NamedTuple):
    """Whose queue it is; a topic's own has no channel."""

    topic: str
    channel: str | None

    def __str__(self) -> str:
        return self.topic if self.channel is None else f"{self.topic}:{self.channel}"


def parse_file(name: str) -> FileName | None:
    """What the file is to which queue, or None for a file of another kind."""
    found = _FILE.fullmatch(name)
    if found is None:
        return None
    queue, meta, digits, bad = found.groups()
    if meta:
        return None if bad else FileName(queue, None, False)
    number = int(digits)
    return FileName(queue, number, bool(bad)) if f"{number:06d}" == digits else None


def parse_queue(queue: str) -> QueueName | None:
    """Whose queue this is, or None where no topic or channel can have that name."""
    topic, *channel = _SEPARATOR.split(queue, maxsplit=1)
    if not all(map(is_valid, (topic, *channel))):
        return None
    return QueueName(topic, channel[0] if channel else None)


def is_old_metadata(name: str) -> bool:
    """Whether nsqd before 1.0 (and a copy beside it until 1.1) kept there what is in nsqd.dat now."""
    return _OLD_METADATA.fullmatch(name) is not None


def data_name(queue: str, number: int) -> str:
    return f"{queue}.diskqueue.{number:06d}.dat"


def meta_name(queue: str) -> str:
    return f"{queue}.diskqueue.meta.dat"
