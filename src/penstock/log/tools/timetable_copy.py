"""A topic's timetable, copied while its node runs, and up to where the log goes that belongs to it.

An entry is in a bucket, or moved: then a note says so, or the log, behind the marks that were copied before. So

- a bucket's notes are copied again when all buckets are, just before the end of the log is read: what is moved later
  is not in that log, what was moved before is noted or in it;
- then the buckets are still those that were copied: none was dealt out to others, whose moves say nothing of it;
- and no segment has gone meanwhile: what it said was not noted yet when the notes were copied.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from penstock.log.tools.copying import Copy, copy_file, copy_segment
from penstock.log.tools.deferred import note_files
from penstock.log.tools.indexes import SUFFIX
from penstock.log.tools.looking import names, opened
from penstock.log.tools.store import bucket_store, buckets

if TYPE_CHECKING:
    from penstock.log.files import Files
    from penstock.log.timetable.bucket import Name
    from penstock.log.tools.store import SegmentFile, Store


class End(NamedTuple):
    """A segment of the log, and how long it was."""

    segment: SegmentFile
    size: int


class TimetableCopy:
    """The buckets of one folder; none where there is no folder."""

    def __init__(self, files: Files, source: str, target: str, log: Store) -> None:
        self.files = files
        self.source = source
        self.target = target
        self.log = log
        self._copied: dict[Name, list[Copy]] = {}

    def __bool__(self) -> bool:
        return bool(self._copied)

    @property
    def copies(self) -> list[Copy]:
        return [copy for copies in self._copied.values() for copy in copies]

    def catch_up(self) -> list[End]:
        """Copy what is there by now; the log's segments as they were at that time."""
        while True:
            segments = self.log.segments(self.files)
            there = buckets(self.files, self.source)
            for name in self._copied.keys() - set(there):  # all of it is in the log, or in those it was dealt out to
                del self._copied[name]
                self._discard(name)
            missing = [name for name in there if name not in self._copied]
            for name in missing:
                self._copy_bucket(name)
            if missing or not self._copy_notes():
                continue
            ends = self._ends()
            kept = [end.segment.path for end in ends[: len(segments)]] == [segment.path for segment in segments]
            if kept and buckets(self.files, self.source) == there:
                return ends

    def _copy_bucket(self, name: Name) -> None:
        """What it is now; nothing of it where it goes meanwhile."""
        if not self.files.exists(self.target):
            self.files.make_directory(self.target)
        store = bucket_store(self.source, name)
        found = names(self.files, self.source)[0]
        try:
            for file in found:
                if file.startswith(name.prefix) and file.endswith(SUFFIX):
                    copy_file(self.files, f"{self.source}/{file}", f"{self.target}/{file}")
            segments = store.segments(self.files)
            self._copied[name] = [copy_segment(self.files, store, segment, self.target) for segment in segments]
        except FileNotFoundError:
            self._discard(name)

    def _copy_notes(self) -> bool:
        """False where some have gone."""
        try:
            for name in self._copied:
                for path in note_files(self.files, bucket_store(self.source, name)):
                    copy_file(self.files, path, f"{self.target}/{os.path.basename(path)}")
        except FileNotFoundError:
            return False
        return True

    def _discard(self, name: Name) -> None:
        for file in names(self.files, self.target)[0]:
            if file.startswith(name.prefix):
                self.files.unlink(f"{self.target}/{file}")

    def _ends(self) -> list[End]:
        ends = []
        for segment in self.log.segments(self.files):
            try:
                with opened(self.files, segment.path) as reader:
                    ends.append(End(segment, reader.limit))
            except FileNotFoundError:
                continue
        return ends
