"""Records and journal entries out of stores, from an offset or a time on, stepping over damage. Changes nothing."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from penstock.errors import CorruptLog
from penstock.log import birth, entries
from penstock.log.index import decode, seed_of_index
from penstock.log.tools.deferred import moved
from penstock.log.tools.indexes import index_path
from penstock.log.tools.looking import Run, damage_in, read_file, stretches
from penstock.log.tools.store import HELD, TIMETABLE, store_at
from penstock.protocol.batch import header, records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.log.entries import Entry
    from penstock.log.files import Files
    from penstock.log.index import Gap, Mark
    from penstock.log.tools.store import SegmentFile, Store
    from penstock.protocol.batch import Header, Record

END: Final = (1 << 64) - 1
_ANY_SIZE: Final = 1 << 62


@dataclass(frozen=True)
class Wanted:
    """Offsets `[first, end)` of what was appended in `[since, until)`."""

    first: int = 0
    end: int = END
    since: int = 0
    until: int = END


class Damaged(NamedTuple):
    """What was stepped over."""

    path: str
    gap: Gap


OnDamage: TypeAlias = "Callable[[Damaged], None]"


class Found(NamedTuple):
    """A record, the time at which it was appended, and the one at which it is due where it is deferred."""

    record: Record
    appended: int
    due: int | None = None


class FoundEntry(NamedTuple):
    """An entry of a journal and the time of its block."""

    ordinal: int
    appended: int
    entry: Entry


def dump_records(files: Files, store: Store, wanted: Wanted, on_damage: OnDamage) -> Iterator[Found]:
    """The records of a store whose batches hold records."""
    if store.kind == TIMETABLE:
        yield from _deferred(files, store, wanted, on_damage)
        return
    base = base_of(files, os.path.dirname(store.directory)) if store.kind == HELD else None
    ordinals = Wanted(since=wanted.since, until=wanted.until) if store.kind == HELD else wanted
    for head, data in batches(files, store, ordinals, on_damage):
        for record in records(data):
            found = record if base is None else record._replace(offset=int(record.id, 16) - base)
            if wanted.first <= found.offset < wanted.end:
                yield Found(found, head.appended)


def _deferred(files: Files, store: Store, wanted: Wanted, on_damage: OnDamage) -> Iterator[Found]:
    """What waits; what a kill caught between its move to the log and the note of it is in both."""
    noted, damaged = moved(files, store)
    for path, gap in damaged:
        on_damage(Damaged(path, gap))
    for head, data in batches(files, store, wanted, on_damage):
        for record in records(data):
            if record.offset not in noted and wanted.first <= record.offset < wanted.end:
                yield Found(record, head.appended, int(record.id, 16))


def dump_entries(files: Files, store: Store, wanted: Wanted, on_damage: OnDamage) -> Iterator[FoundEntry]:
    """The entries of a journal; `wanted` counts ordinals."""
    for head, data in batches(files, store, wanted, on_damage):
        for ordinal, entry in enumerate(entries.decode(data[head.payload :]), head.first):
            if wanted.first <= ordinal < wanted.end:
                yield FoundEntry(ordinal, head.appended, entry)


def batches(files: Files, store: Store, wanted: Wanted, on_damage: OnDamage) -> Iterator[tuple[Header, memoryview]]:
    """The good batches that may hold what is wanted."""
    for segment in store.segments(files):
        if segment.bound is not None and segment.bound <= wanted.first:
            continue
        try:
            yield from _batches_of(files, store, segment, wanted, on_damage)
        except FileNotFoundError:  # deleted since it was listed
            continue


def _batches_of(
    files: Files, store: Store, segment: SegmentFile, wanted: Wanted, on_damage: OnDamage
) -> Iterator[tuple[Header, memoryview]]:
    start = _start(files, store, segment, wanted)
    end = wanted.end if segment.bound is None else min(wanted.end, segment.bound)
    for stretch in stretches(files, segment.path, segment.first, store.seed, start):
        if isinstance(stretch, Run):
            at = 0
            while at < len(stretch.data):
                head = header(stretch.data, at)
                if head.first >= end or head.appended >= wanted.until:
                    return
                if head.next > wanted.first and head.appended >= wanted.since:
                    yield header(stretch.data[at : head.end]), stretch.data[at : head.end]
                at = head.end
        elif gap := damage_in(stretch):
            on_damage(Damaged(segment.path, gap))


def _start(files: Files, store: Store, segment: SegmentFile, wanted: Wanted) -> Mark | None:
    """Where the index says to begin; the batch that stands there is checked before it is believed."""
    if segment.first is None:
        return None
    data = read_file(files, index_path(segment.path)) or b""
    index, _ = decode(data, segment.first, seed_of_index(segment.first, store.seed), _ANY_SIZE)
    by_offset = index.before_offset(wanted.first)
    by_time = index.before_time(wanted.since)
    return max((mark for mark in (by_offset, by_time) if mark), default=None)


def base_of(files: Files, directory: str) -> int | None:
    """The id of a topic's offset 0, from topic.json or else from the first record; None where there is neither."""
    try:
        return birth.read(files, directory).base
    except CorruptLog:
        for _, data in batches(files, store_at(directory), Wanted(), lambda _damaged: None):
            record = next(records(data))
            return int(record.id, 16) - record.offset
        return None
