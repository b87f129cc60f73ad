"""A topic's folder, copied while its node runs.

In this order:

    indexes      when this is made
    timetable    then, see timetable_copy.py
    log          as far as it went then, up to the last whole batch
    held         after the log: what a segment that was deleted meanwhile left behind is here by then
    topic.json   its `earliest` as it was before, its `reserved` as it is then and far beyond
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from penstock.errors import CorruptLog
from penstock.log import birth, damage
from penstock.log.tools import small_files
from penstock.log.tools.copying import Copy, copy_file, copy_segment, remove_tree
from penstock.log.tools.dump import base_of
from penstock.log.tools.indexes import SUFFIX, index_path, is_sealed
from penstock.log.tools.looking import names, read_file
from penstock.log.tools.store import HELD, LOG, TIMETABLE, store_at
from penstock.log.tools.timetable_copy import TimetableCopy

if TYPE_CHECKING:
    from penstock.log.birth import Birth
    from penstock.log.files import Files
    from penstock.log.tools.store import SegmentFile, Store
    from penstock.log.tools.timetable_copy import End

_TRIES: Final = 100  # as often retention may take what is not copied yet
AHEAD: Final = 1 << 46  # offsets that a copy leaves to the running node: half a year at four million a second


class TopicCopy:
    """One topic's copy, begun when it is made."""

    def __init__(self, files: Files, source: str, target: str) -> None:
        self.files = files
        self.source = source
        self.target = target
        self.complaints: list[str] = []  # damage that is in no segment
        self.copies: dict[str, list[Copy]] = {}  # by the kind of their store
        self._before = self._birth()
        files.make_directory(target)
        for folder in ("", f"/{HELD}"):
            self._copy_small(folder, SUFFIX)

    def _birth(self) -> Birth | None:
        try:
            return birth.read(self.files, self.source)
        except CorruptLog as error:
            self.complaints = [str(error)]
            return None

    def _copy_small(self, folder: str, suffix: str = "") -> None:
        """The files of a folder whose names end so, as they are."""
        found = [name for name in names(self.files, self.source + folder)[0] if name.endswith(suffix)]
        for name in found:
            self._make(folder)
            try:
                copy_file(self.files, f"{self.source}{folder}/{name}", f"{self.target}{folder}/{name}", flush=False)
            except FileNotFoundError:
                continue

    def _make(self, folder: str) -> None:
        if not self.files.exists(self.target + folder):
            self.files.make_directory(self.target + folder)

    def finish(self) -> bool:
        """The rest of it; False, and nothing is left of it, where the topic is deleted meanwhile."""
        self.copies[LOG] = self._copy_log()
        self.copies[HELD] = self._copy_held()
        after = self._birth()
        if not self.files.exists(self.source):
            remove_tree(self.files, self.target)
            return False
        self._copy_small(f"/{damage.FOLDER}")
        self._drop_what_went()
        birth.write(self.files, self.target, self._birth_of_copy(after), flush=False)
        return True

    def _copy_log(self) -> list[Copy]:
        """And the timetable, as they were at one time."""
        log = store_at(self.source)
        timetable = TimetableCopy(self.files, f"{self.source}/{TIMETABLE}", f"{self.target}/{TIMETABLE}", log)
        full: dict[str, Copy] = {}
        for _ in range(_TRIES):
            copies = self._copy_segments(log, timetable.catch_up(), full, needed=bool(timetable))
            if copies is not None:
                self.copies[TIMETABLE] = timetable.copies
                return copies
        raise CorruptLog(f"{self.source} changes faster than it can be copied")

    def _copy_segments(self, log: Store, ends: list[End], full: dict[str, Copy], *, needed: bool) -> list[Copy] | None:
        """Newest first, since the oldest go first: what is wanted of those that went is in `held` by then.

        None where all went, or one that says what was moved from the timetable. `full` were copied before.
        """
        copies: list[Copy] = []
        for segment, size in reversed(ends):
            copy = full.get(segment.path)
            if copy is None:
                try:
                    copy = copy_segment(self.files, log, segment, self.target, size)
                except FileNotFoundError:
                    if not copies or (needed and not self._is_sealed(log, segment)):
                        return None
                    break
                if segment.bound is not None:
                    full[segment.path] = copy
            copies.append(copy)
        return copies[::-1]

    def _is_sealed(self, log: Store, segment: SegmentFile) -> bool:
        """By the index that was copied before: a start would not look for anything in it."""
        data = read_file(self.files, index_path(f"{self.target}/{os.path.basename(segment.path)}")) or b""
        return is_sealed(data, segment.first or 0, log.seed)

    def _copy_held(self) -> list[Copy]:
        """Until none is left that is not copied: what is wanted moves from the oldest file to the newest."""
        copies: dict[str, Copy] = {}
        store = store_at(f"{self.source}/{HELD}")
        while missing := [each for each in store.segments(self.files) if each.path not in copies]:
            self._make(f"/{HELD}")
            for segment in missing:
                try:
                    copies[segment.path] = copy_segment(self.files, store, segment, f"{self.target}/{HELD}")
                except FileNotFoundError:
                    continue
        return list(copies.values())

    def _drop_what_went(self) -> None:
        """Indexes, and earlier copies, of segments that were deleted since."""
        for kind, directory in ((LOG, self.target), (HELD, f"{self.target}/{HELD}")):
            kept = {path for copy in self.copies[kind] for path in (copy.path, index_path(copy.path))}
            for name in names(self.files, directory)[0]:
                if f"{directory}/{name}" not in kept:
                    self.files.unlink(f"{directory}/{name}")

    def _birth_of_copy(self, after: Birth | None) -> Birth:
        """What was kept when the copying began is kept in the copy; what it will give out, the node never does."""
        log = self.copies[LOG]
        first = log[0].first if log else None
        end = log[-1].tail.offset if log else 0
        if self._before is None or after is None:
            made = small_files.birth_anew(self.target, base_of(self.files, self.target), first, end)
        else:
            made = after._replace(earliest=max(self._before.earliest, first or 0))
        return made._replace(reserved=max(made.reserved, end) + AHEAD)
