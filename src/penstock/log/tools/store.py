"""A store: segments in one folder that follow each other and share a seed. Knows names and seeds; reads no message."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.log import birth, damage, held, journal, timetable
from penstock.log.data_path import JOURNAL
from penstock.log.timetable.bucket import Name, parse
from penstock.log.tools.looking import names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.log.files import Files

SUFFIX: Final = ".log"
_LEFT_OVER: Final = (".partial", ".rescue")

LOG: Final = "log"
HELD: Final = held.FOLDER
TIMETABLE: Final = timetable.FOLDER
_SALTS: Final = {HELD: held.SALT, TIMETABLE: 0}  # what a folder below a topic's makes of the topic's seed


class SegmentFile(NamedTuple):
    """One file of a store."""

    path: str
    first: int | None  # by its name; None where the name does not say
    bound: int | None  # from here on the next file holds the batches


class Store(NamedTuple):
    """Segments in one directory."""

    kind: str  # LOG, HELD, TIMETABLE or JOURNAL
    topic: str  # its folder's name; empty for the journal, and where it is not known
    directory: str
    seed: int
    prefix: str = ""  # of the files' names, where others are in the directory too
    only: str = ""  # the one file that was asked for

    def segments(self, files: Files) -> list[SegmentFile]:
        """Its files as they are now, in order."""
        found = names(files, self.directory)[0]
        firsts = [first for name in found if (first := self._first(name)) is not None]
        bounds: Iterable[int | None] = [*firsts[1:], None]
        segments = [
            SegmentFile(f"{self.directory}/{self.prefix}{first:020d}{SUFFIX}", first, bound)
            for first, bound in zip(firsts, bounds, strict=False)
        ]
        if not self.only:
            return segments
        path = f"{self.directory}/{self.only}"
        return [each for each in segments if each.path == path] or [SegmentFile(path, None, None)]

    def _first(self, name: str) -> int | None:
        return first_of(name.removeprefix(self.prefix)) if name.startswith(self.prefix) else None


def left_over(files: Files, directory: str, prefix: str = "") -> list[str]:
    """Files there that were being made when a node was killed; nothing reads them."""
    found = (name for name in names(files, directory)[0] if name.startswith(prefix) and name.endswith(_LEFT_OVER))
    return [f"{directory}/{name}" for name in found]


def first_of(name: str) -> int | None:
    """The first offset in a segment's name."""
    digits = name.removesuffix(SUFFIX)
    return int(digits) if len(name) == 20 + len(SUFFIX) and len(digits) == 20 and digits.isdecimal() else None


def store_at(directory: str, only: str = "") -> Store:
    """The store in a folder, by the names of the folder and of those above it; nothing is looked at.

    Of a timetable the one with that file, which has to be named.
    """
    kind = _kind(directory)
    seed = seed_at(directory) or 0
    bucket = parse(only) if kind == TIMETABLE else None
    if bucket is not None:
        return bucket_store(directory, bucket[0])._replace(only=only)
    return Store(kind, topic_at(directory), directory, seed, only=only)


def bucket_store(directory: str, name: Name) -> Store:
    seed = ((seed_at(directory) or 0) + name.serial) & 0xFFFFFFFF
    return Store(TIMETABLE, topic_at(directory), directory, seed, name.prefix)


def buckets(files: Files, directory: str) -> list[Name]:
    """Those in a timetable's folder that count: with their first file, and without the one they were split from."""
    found = [bucket for name in names(files, directory)[0] if (bucket := parse(name))]
    alive = {name.serial: name for name, number, kind in found if (number, kind) == (0, "log")}
    return sorted(name for name in alive.values() if name.parent not in alive)


def _kind(directory: str) -> str:
    name = os.path.basename(directory)
    if name == damage.FOLDER:
        return _kind(os.path.dirname(directory))
    return name if name in (*_SALTS, JOURNAL) else LOG


def seed_at(directory: str) -> int | None:
    """The seed that the folder's name says; of a timetable the one that its buckets' seeds are made from."""
    parent, name = os.path.split(directory)
    if name == JOURNAL:
        return journal.SEED
    if name == damage.FOLDER:
        return seed_at(parent)
    if name in _SALTS:
        above = seed_at(parent)
        return None if above is None else above ^ _SALTS[name]
    return birth.nameless(directory).seed if is_topic(directory) else None


def topic_at(directory: str) -> str:
    """The name of the topic's folder that this one is, or is in."""
    parent, name = os.path.split(directory)
    if name in (*_SALTS, damage.FOLDER):
        return topic_at(parent)
    return name if is_topic(directory) else ""


def is_topic(directory: str) -> bool:
    return birth.split_folder(os.path.basename(directory)) is not None
