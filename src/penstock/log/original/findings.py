"""What an operator has to know of an original folder that is not as a clean shutdown leaves it. Knows words only."""

from __future__ import annotations

import enum
from typing import NamedTuple


class Kind(enum.Enum):
    """What was found; the value is the sentence that a person reads."""

    NO_METADATA = "{file} is missing: topics and channels are those that have files, and none is paused"
    BAD_METADATA = "{file} cannot be understood: topics and channels are those that have files, and none is paused"
    BAD_NAME = "{file} is listed, but no topic or channel can have this name: left out"
    EPHEMERAL_NAME = "{file} is ephemeral, and listed all the same: left out"
    UNLISTED = "{file} is a queue that nsqd.dat does not list: taken as its name says"
    FOREIGN = "{file} is a queue whose name no topic or channel can have: not read"
    EPHEMERAL = "{file} is the queue of an ephemeral topic or channel, which has none: not read"
    SET_ASIDE = "{file} was set aside by nsqd as bad: not read"
    NO_META = "{file} is missing, and nsqd would overwrite the queue: read from the beginning of its first file"
    BAD_META = "{file} cannot be understood: the queue is read from the beginning of its first file"
    COUNT = "{file} counts {position} messages, {size} were found"
    GONE = "{size} files from {file} on should be there: delivered to their end when nsqd was killed, or lost"
    DELIVERED = "{file} lies before the read position: what it holds was delivered, not read"
    BEYOND = "{file} lies behind the write position: read as well"
    LATE = "{file}: {size} bytes behind the write position {position} are read as well"
    SHORT = "{file}: {size} bytes are missing before the position {position} that the meta file names"
    TORN = "{file}: the last record, at {position}, is not whole: its {size} bytes are left out"
    DAMAGED = "{file}: {size} bytes at {position} are no records: stepped over"
    UNREADABLE = "{file}: parts could not be read from the device and count as zeros"


class Finding(NamedTuple):
    """One thing found in one file of the folder."""

    kind: Kind
    file: str
    position: int = 0
    size: int = 0

    def __str__(self) -> str:
        return self.kind.value.format(file=self.file, position=self.position, size=self.size)


Findings = dict[Finding, None]  # in the order they were found, each once, however often a queue is read
