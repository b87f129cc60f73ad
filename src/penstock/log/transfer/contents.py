"""What of a topic's log is to be delivered yet, read in order and in flat memory. Knows one log and no channel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.errors import NotRetained
from penstock.protocol.batch import positions, record

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterable, Iterator, Sequence

    from typing_extensions import Buffer

    from penstock.log.chain import Hole
    from penstock.log.entries import Message
    from penstock.log.segment import Block
    from penstock.log.topic_log import TopicLog
    from penstock.protocol.batch import Record

BLOCK: Final = 256 << 10
FEW: Final = 64 << 10  # read at a time where perhaps a single message is wanted


class Part(NamedTuple):
    """Records: where they begin in `data`."""

    data: Buffer
    places: Sequence[int]


def stretch(log: TopicLog, first: int, end: int, holes: Iterable[Hole]) -> Iterator[Part]:
    """The records of `[first, end)` that are in no hole."""
    for start, stop in _between(first, end, holes):
        for block in _blocks(log, start, stop):
            places = positions(block.data, 0, len(block.data))
            yield Part(block.data, places[max(0, start - block.first) : stop - block.first])


def _between(first: int, end: int, holes: Iterable[Hole]) -> Iterator[tuple[int, int]]:
    for hole in holes:
        if hole.first > first:
            yield first, min(hole.first, end)
        first = max(first, hole.next)
        if first >= end:
            return
    yield first, end


def _blocks(log: TopicLog, offset: int, end: int) -> Iterator[Block]:
    while offset < end:
        try:
            block = log.read(offset, BLOCK)
        except NotRetained as error:
            offset = max(offset + 1, error.earliest)
            continue
        if block is None or block.first >= end:
            return
        yield block
        offset = block.next


class Picked(NamedTuple):
    """An unfinished message and its record."""

    message: Message
    record: Record


def picked(log: TopicLog, messages: Iterable[Message]) -> Iterator[Picked | None]:
    """The records of these messages, which come in rising order; None for each that is not there any more."""
    block: Block | None = None
    places: array[int] | None = None
    for message in messages:
        if block is None or message.offset >= block.next:
            try:
                block = log.read(message.offset, FEW)
            except NotRetained:
                block = None
            places = positions(block.data, 0, len(block.data)) if block else None
        if block is None or places is None or message.offset < block.first:
            yield None
        else:
            yield Picked(message, record(block.data, places[message.offset - block.first], message.offset))
