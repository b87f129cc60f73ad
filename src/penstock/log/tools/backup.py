"""A consistent copy of a data path, of a running node without its help, or of one that stands.

What is copied when decides what a start on the copy finds:

    indexes      first: behind their marks a start looks for what came under a key and may not be noted elsewhere; all
                 that came before them is noted in what is copied from now on
    journal      then: all that it says of a log is in the logs, which are copied later
    topics       see topic_copy.py
    node.json    last

So everything that was answered before the backup began is in it. A start on the copy goes on as after a power cut, at
offsets that the running node does not reach: none that anyone has seen means another message there.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from penstock.errors import CorruptLog, DataPathError, LogError, NoLogThere, log_error
from penstock.log.data_path import JOURNAL, TOPICS
from penstock.log.files import replace
from penstock.log.tools import small_files
from penstock.log.tools.copying import Copy, clear, copy_segment, remove_tree
from penstock.log.tools.looking import read_file
from penstock.log.tools.store import store_at
from penstock.log.tools.stores import is_data_path, topic_directories
from penstock.log.tools.topic_copy import TopicCopy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from penstock.log.files import Files

_TRIES: Final = 100  # as often the journal may be compacted under the copying before it is given up
_VIEW: Final = "nsqd.dat"


@dataclass
class Copied:
    """What the copy holds, by the kind of its stores."""

    topics: int = 0
    segments: Counter[str] = field(default_factory=Counter)
    records: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    damage: list[str] = field(default_factory=list)  # the source's; the copy has it too

    def add(self, kind: str, copies: Iterable[Copy]) -> None:
        for copy in copies:
            self.segments[kind] += 1
            self.records[kind] += copy.records
            self.bytes += copy.size
            self.damage += [f"{copy.path}: bad from byte {gap.position} to {gap.stop}" for gap in copy.gaps]


def backup(files: Files, source: str, target: str) -> Copied:
    """Copy the data path; the copy is checked, and on the device, when this returns."""
    source, target = os.path.realpath(source), os.path.realpath(target)
    if not is_data_path(files, source):
        raise NoLogThere(f"{source} is no data path")
    copied = Copied()
    try:
        identity = _identity(files, source, copied)
        _prepare(files, source, target)
        with _all_or_nothing(files, target):
            _copy(files, source, target, copied)
            files.flush_all(target)
            small_files.write_node(files, target, identity)
    except OSError as error:
        raise log_error(error, f"copying {source} to {target}") from error
    return copied


@contextmanager
def _all_or_nothing(files: Files, target: str) -> Iterator[None]:
    """The folder is empty again where the copy fails."""
    try:
        yield
    except BaseException:
        with suppress(OSError, LogError):
            clear(files, target)
        raise


def _identity(files: Files, source: str, copied: Copied) -> str | None:
    try:
        return small_files.read_node(files, source).identity
    except CorruptLog as error:
        copied.damage.append(str(error))
        return small_files.identity_in(files, source)


def _prepare(files: Files, source: str, target: str) -> None:
    if f"{target}/".startswith(f"{source}/"):
        raise DataPathError(f"{target} lies in {source}: a copy has to be elsewhere")
    if not files.exists(target):
        files.make_directory(target)
    elif any(True for _ in files.list(target)):
        raise DataPathError(f"{target} is not empty: a copy goes into a folder of its own")


def _copy(files: Files, source: str, target: str, copied: Copied) -> None:
    files.make_directory(f"{target}/{TOPICS}")
    begun: dict[str, TopicCopy] = {}
    for directory in topic_directories(files, source):
        begun[directory] = TopicCopy(files, directory, f"{target}/{TOPICS}/{os.path.basename(directory)}")
    _copy_journal(files, f"{source}/{JOURNAL}", f"{target}/{JOURNAL}", copied)
    for directory in topic_directories(files, source):  # also what was created since
        topic = begun.pop(directory, None)
        if topic is None:
            topic = TopicCopy(files, directory, f"{target}/{TOPICS}/{os.path.basename(directory)}")
        if topic.finish():
            copied.topics += 1
            copied.damage += topic.complaints
            for kind, copies in topic.copies.items():
                copied.add(kind, copies)
    for topic in begun.values():
        remove_tree(files, topic.target)  # deleted since
    if (view := read_file(files, f"{source}/{_VIEW}")) is not None:
        replace(files, f"{target}/{_VIEW}", view, flush=False)


def _copy_journal(files: Files, source: str, target: str, copied: Copied) -> None:
    """Its files as they were at one time: all of them again where a compaction removed one under the copying."""
    if not files.exists(source):
        return
    store = store_at(source)
    for _ in range(_TRIES):
        files.make_directory(target)
        try:
            copies = [copy_segment(files, store, segment, target) for segment in store.segments(files)]
        except FileNotFoundError:
            remove_tree(files, target)
        else:
            copied.add(JOURNAL, copies)
            return
    raise CorruptLog(f"{source} changes faster than it can be copied")
