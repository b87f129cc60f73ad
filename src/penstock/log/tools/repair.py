"""Makes again what can be made from the batches: indexes, topic.json, node.json; never removes a message.

Works under the data path's lock, so never beside a node. Everything is replaced whole: a repair that was killed is
begun again.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from penstock.errors import CorruptLog, DataPathError, log_error
from penstock.log import birth
from penstock.log.birth import RESERVE
from penstock.log.data_path import NODE
from penstock.log.tools import indexes, small_files
from penstock.log.tools.looking import Run, stretches
from penstock.log.tools.store import LOG, left_over
from penstock.log.tools.stores import find, is_data_path
from penstock.log.tools.verify import verify_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.log.files import Files
    from penstock.log.tools.store import Store
    from penstock.log.tools.verify import FileReport, StoreReport


class Deed(NamedTuple):
    """What was done, or would be: "repair" a file, "remove" it, or "leave" it as it is; and why."""

    verb: str
    path: str
    why: str


def repair(files: Files, path: str, *, dry_run: bool = False) -> Iterator[Deed]:
    """Repair what is at `path`, telling each thing as it is done; DataPathError where a node runs on it."""
    path = os.path.realpath(path)
    stores = find(files, path)
    with _locked(files, _data_path_of(files, path) or stores[0].directory):
        if is_data_path(files, path):
            yield from _sweep(files, left_over(files, path), [], dry_run)
            yield from _repair_node(files, path, dry_run)
        for store in stores:
            yield from _repair_store(files, store, dry_run)


def _data_path_of(files: Files, path: str) -> str | None:
    """The data path that `path` lies in."""
    while not is_data_path(files, path):
        parent = os.path.dirname(path)
        if parent == path:
            return None
        path = parent
    return path


@contextmanager
def _locked(files: Files, directory: str) -> Iterator[None]:
    try:
        lock = files.lock_directory(directory)
    except BlockingIOError as error:
        raise DataPathError(f"{directory} is in use by another process: stop it first") from error
    except OSError as error:
        raise DataPathError(f"{directory} cannot be locked: {error.strerror}") from error
    try:
        yield
    except OSError as error:
        raise log_error(error, f"repairing {directory}") from error
    finally:
        files.close(lock)


def _repair_node(files: Files, data_path: str, dry_run: bool) -> Iterator[Deed]:
    path = f"{data_path}/{NODE}"
    try:
        small_files.read_node(files, data_path)
    except CorruptLog as error:
        identity = small_files.identity_in(files, data_path)
        if not dry_run:
            small_files.write_node(files, data_path, identity)
        kept = "its identity is kept" if identity else "its identity is lost: it gets a new one"
        yield Deed("repair", path, f"{_without(path, error)}; {kept}")


def _repair_store(files: Files, store: Store, dry_run: bool) -> Iterator[Deed]:
    report = verify_store(files, store)
    last = report.files[-1] if report.files else None
    for file in report.files:
        for gap in file.gaps:
            bad = "is missing" if file.missing else f"bad from byte {gap.position} to {gap.stop}"
            yield Deed("leave", file.path, f"{bad}: readers step over it")
        if file.bytes and file.index not in ("", "good"):
            if not dry_run:
                entries = indexes.make(files, file.path, file.first, store.seed, file is not last)
                indexes.write(files, file.path, entries)
            yield Deed("repair", indexes.index_path(file.path), f"was {file.index}")
    if store.only:
        return
    paths = left_over(files, store.directory, store.prefix)
    yield from _sweep(files, paths, report.files, dry_run, store.seed)
    if store.kind == LOG and store.topic:
        yield from _repair_birth(files, report, dry_run)


def _repair_birth(files: Files, report: StoreReport, dry_run: bool) -> Iterator[Deed]:
    """topic.json where it is damaged, or the log once went further than it, or than the files do now."""
    directory = report.store.directory
    path = f"{directory}/{birth.NAME}"
    end = max((file.next for file in report.files), default=0)
    was = max((gap.next for file in report.files for gap in file.gaps), default=0)
    try:
        known = birth.read(files, directory)
        if max(end, was) <= known.reserved and was <= max(end, known.resume):
            return
        resume = max(known.reserved, end, was)
        made = known._replace(resume=resume, reserved=resume + RESERVE)
        why = f"the log ends at {end}, and went up to {max(end, was)} of {known.reserved} reserved offsets"
    except CorruptLog as error:
        base = next((file.base for file in report.files if file.base is not None), None)
        earliest = report.files[0].first if report.files else None
        made = small_files.birth_anew(directory, base, earliest, max(end, was))
        why = _without(path, error)
    if not dry_run:
        birth.write(files, directory, made)
    yield Deed("repair", path, why)


def _without(path: str, error: CorruptLog) -> str:
    """What is wrong with it, where its path is told beside that."""
    return str(error).removeprefix(f"{path} ")


def _sweep(files: Files, paths: list[str], segments: list[FileReport], dry_run: bool, seed: int = 0) -> Iterator[Deed]:
    """Remove what was being made when a node was killed, unless it holds what the log does not."""
    for path in paths:
        if only := _only_here(files, path, segments, seed):
            yield Deed("leave", path, f"holds {only} records that no segment has: `penstock log dump` shows them")
            continue
        if not dry_run:
            files.unlink(path)
        yield Deed("remove", path, "was being made when a node was killed")


def _only_here(files: Files, path: str, segments: list[FileReport], seed: int) -> int:
    """How many records of a file no segment has."""
    missing = 0
    for stretch in stretches(files, path, None, seed):
        if isinstance(stretch, Run):
            missing += sum(not _has(segments, offset) for offset in range(stretch.first, stretch.next))
    return missing


def _has(segments: list[FileReport], offset: int) -> bool:
    return any(
        file.first <= offset < file.next and not any(gap.first <= offset < gap.next for gap in file.gaps)
        for file in segments
    )
