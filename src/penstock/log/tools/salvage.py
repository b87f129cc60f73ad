"""Messages out of any file, whatever became of the rest of it: a copy of damage, half a segment, a disk's lost+found.

- A batch is good when its CRC holds with a seed that is known: by the folder's name, or since two batches have it.
- Of what lies between, a record is told where its size, its id and what follows it fit; nothing vouches for its body.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.errors import NoLogThere
from penstock.log.tools.looking import likely_batches, names, opened
from penstock.log.tools.seeds import holds_records, seed_of
from penstock.log.tools.store import seed_at
from penstock.log.tools.stores import is_file
from penstock.protocol.batch import HEADER, MAGIC, RECORD, check, record, records

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from penstock.log.files import Files
    from penstock.log.scan import Reader
    from penstock.protocol.batch import Record

_PIECE: Final = 64 << 20  # no record that is looked for between batches is larger
_OVERLAP: Final = 4 << 20
_ID: Final = re.compile(rb"[0-9a-f]{16}")
_BEFORE_ID: Final = 14


class Salvaged(NamedTuple):
    """A record, and where it stood in the file; its offset is -1 where no batch says the ids' base."""

    position: int
    record: Record
    verified: bool  # its batch's CRC holds


def salvage_all(files: Files, path: str) -> Iterator[tuple[str, Salvaged]]:
    """Every record that is found in the file, or in the files of the folder and those below it; and in which."""
    directory = os.path.realpath(path)
    if not files.exists(directory):
        raise NoLogThere(f"there is no {directory}")
    for each in sorted(_files_below(files, directory)):
        named = seed_at(os.path.dirname(each))
        for found in salvage(files, each, named):
            yield each, found


def _files_below(files: Files, path: str) -> Iterator[str]:
    if is_file(files, path):
        yield path
        return
    found, folders = names(files, path)
    yield from (f"{path}/{name}" for name in found)
    for folder in folders:
        yield from _files_below(files, f"{path}/{folder}")


def salvage(files: Files, path: str, named: int | None) -> Iterator[Salvaged]:
    """Every record that is found in the file, in the order of the file; `named` is the seed by its place."""
    with opened(files, path) as reader:
        seeds = _seeds(reader, named)
        position, base = 0, None
        for at, batch in likely_batches(reader):
            if at < position or not _is_good(batch, seeds):
                continue
            first = next(records(batch))
            base = int(first.id, 16) - first.offset
            yield from _between(reader, position, at, base)
            yield from _whole(at, batch)
            position = at + len(batch)
        yield from _between(reader, position, reader.limit, base)


def _seeds(reader: Reader, named: int | None) -> Collection[int]:
    """The seed by the place, and those that two different batches have."""
    seeds = set() if named is None else {named}
    once: dict[int, bytes] = {}
    for _, batch in likely_batches(reader):
        if not _is_good(batch, seeds):
            seed, head = seed_of(batch), batch[:HEADER]
            if once.setdefault(seed, head) != head:
                seeds.add(seed)
    return seeds


def _is_good(batch: bytes, seeds: Collection[int]) -> bool:
    return any(check(batch, 0, seed) > 0 for seed in seeds) and holds_records(batch)


def _whole(position: int, batch: bytes) -> Iterator[Salvaged]:
    for found in records(batch):
        yield Salvaged(position, found, verified=True)


def _between(reader: Reader, start: int, stop: int, base: int | None) -> Iterator[Salvaged]:
    """Records in bytes that no good batch holds."""
    while start < stop:
        data = reader.read(start, min(_PIECE, stop - start))
        begin = 0
        for at, end in loose_records(data):
            found = record(data, at, 0)
            offset = -1 if base is None else int(found.id, 16) - base
            yield Salvaged(start + at, found._replace(offset=offset), verified=False)
            begin = end
        if start + len(data) >= stop or not data:
            return
        start += max(begin, len(data) - _OVERLAP)


def loose_records(data: bytes) -> Iterator[tuple[int, int]]:
    """Where records begin and end in bytes of which some are bad."""
    at = 0
    while found := _ID.search(data, at + _BEFORE_ID):
        start = found.start() - _BEFORE_ID
        end = _end(data, start)
        if end is not None and _goes_on(data, end):
            yield start, end
            at = end
        else:
            at = start + 1


def _end(data: bytes, start: int) -> int | None:
    size = int.from_bytes(data[start : start + 4], "big")
    end = start + 4 + size
    return end if size >= RECORD - 4 and end <= len(data) else None


def _goes_on(data: bytes, at: int) -> bool:
    """Whether the next record begins here, or the batch ends; one record that is itself bad may stand between."""
    if _is_edge(data, at):
        return True
    end = _end(data, at) if at + RECORD <= len(data) else None
    return end is not None and _is_edge(data, end)


def _is_edge(data: bytes, at: int) -> bool:
    return at == len(data) or data.startswith(MAGIC, at) or _ID.match(data, at + _BEFORE_ID, at + RECORD) is not None
