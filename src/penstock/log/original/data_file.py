"""One data file of a queue: its records, also behind what is none. Knows an open file; knows no queue.

Where no record can be believed, the next place is looked for where one begins and another one, or the end of the file,
follows. What lies between is a gap.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.log.original.records import Place, believable_size, walk
from penstock.protocol.batch import RECORD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.log.scan import Reader

WINDOW: Final = 1 << 20

_HEAD: Final = re.compile(rb"(?=[\x00-\x3f].{3}[\x00-\x7f].{9}[0-9a-f]{16})", re.DOTALL)


class Block(NamedTuple):
    """Whole records; `data` begins at `position` of the file."""

    position: int
    data: bytes
    places: list[Place]


class Gap(NamedTuple):
    """Bytes that are no records; `torn` where they are the beginning of one and nothing follows."""

    position: int
    size: int
    torn: bool


def read_records(reader: Reader, at: int) -> Iterator[Block | Gap]:
    """All that stands in the file from `at` on, in order, holding a window or one record of it."""
    want = WINDOW
    while at < reader.limit:
        data = reader.read(at, want)
        final = len(data) < want or at + len(data) >= reader.limit
        places, stop, bad = walk(data, final)
        if places:
            yield Block(at, data, places)
        at += stop
        want = WINDOW
        if not (places or bad or final):  # a record that is larger than the window, if it ends in the file at all
            want = 4 + believable_size(data) + RECORD
            final = at + want - RECORD > reader.limit
        if bad or (final and at < reader.limit):
            parts, at = _around(reader, at)
            yield from parts
            want = WINDOW


def _around(reader: Reader, at: int) -> tuple[list[Block | Gap], int]:
    """What stands where nothing believable follows, and where records begin again.

    A record that may be whole counts if the next one lies behind it, for else its size was wrong.
    """
    parts: list[Block | Gap] = []
    after = _end(reader, at)
    found = find_next(reader, at + 1)
    again = reader.limit if found is None else found
    if at < after <= again:
        data = reader.read(at, after - at)
        parts.append(Block(at, data, walk(data, final=True)[0]))
        at = after
    if at < again:
        torn = found is None and (again - at < RECORD or believable_size(reader.read(at, RECORD)) > 0)
        parts.append(Gap(at, again - at, torn))
    return parts, again


def find_next(reader: Reader, position: int) -> int | None:
    """Where, from `position` on, records begin again, or None where none does before the end of the file."""
    while data := reader.read(position, WINDOW):
        for match in _HEAD.finditer(data):
            if _begins_again(reader, position + match.start()):
                return position + match.start()
        if len(data) < WINDOW:
            break
        position += WINDOW - RECORD + 1
    return None


def _begins_again(reader: Reader, position: int) -> bool:
    """Whether a record begins here and another one, or the end of the file, follows it."""
    after = _end(reader, position)
    if after == position:
        return False
    return reader.limit - after < RECORD or believable_size(reader.read(after, RECORD)) > 0


def _end(reader: Reader, position: int) -> int:
    """Where the record that begins here ends, if one does and its size may be right; else `position`."""
    size = believable_size(reader.read(position, RECORD))
    after = position + 4 + size
    return after if size and after <= reader.limit else position
