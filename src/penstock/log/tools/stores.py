"""What a path is to the tools: a data path, a topic's folder, one below it, or a lone file whose folder is lost."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.errors import NoLogThere
from penstock.log import birth, journal
from penstock.log.data_path import JOURNAL, NODE, TOPICS
from penstock.log.scan import find_good
from penstock.log.tools.looking import names, opened
from penstock.log.tools.seeds import find_seed
from penstock.log.tools.store import HELD, LOG, TIMETABLE, Store, bucket_store, buckets, first_of, is_topic, store_at

if TYPE_CHECKING:
    from penstock.log.files import Files


def find(files: Files, path: str) -> list[Store]:
    """What stands at `path`; NoLogThere where it is nothing of ours."""
    directory = os.path.realpath(path)
    if is_file(files, directory):
        return [_checked(files, store_at(os.path.dirname(directory), os.path.basename(directory)))]
    if is_data_path(files, directory):
        return [*_topics(files, directory), *_if_there(files, f"{directory}/{JOURNAL}")]
    if os.path.basename(directory) == TOPICS:
        return _topics(files, os.path.dirname(directory))
    found, _ = names(files, directory)
    if birth.NAME in found or is_topic(directory):
        return _topic(files, directory)
    store = store_at(directory)
    if store.kind == TIMETABLE:
        return _timetable(files, directory)
    if store.kind != LOG or any(first_of(name) is not None for name in found):
        return [_checked(files, store)]
    raise NoLogThere(f"{directory} is no data path, no topic's folder, and holds no segment")


def is_data_path(files: Files, directory: str) -> bool:
    return files.exists(f"{directory}/{NODE}") or files.exists(f"{directory}/{TOPICS}")


def is_file(files: Files, path: str) -> bool:
    """Whether it is anything but a folder; NoLogThere where it is nothing."""
    parent, name = os.path.split(path)
    if not name:
        return False
    if name not in (entries := dict(files.list(parent)) if files.exists(path) else {}):
        raise NoLogThere(f"there is no {path}")
    return not entries[name]


def topic_directories(files: Files, data_path: str) -> list[str]:
    directory = f"{data_path}/{TOPICS}"
    return [f"{directory}/{name}" for name in names(files, directory)[1] if birth.split_folder(name)]


def _topics(files: Files, data_path: str) -> list[Store]:
    return [store for topic in topic_directories(files, data_path) for store in _topic(files, topic)]


def _topic(files: Files, directory: str) -> list[Store]:
    held = _if_there(files, f"{directory}/{HELD}")
    return [_checked(files, store_at(directory)), *held, *_timetable(files, f"{directory}/{TIMETABLE}")]


def _if_there(files: Files, directory: str) -> list[Store]:
    return [_checked(files, store_at(directory))] if files.exists(directory) else []


def _timetable(files: Files, directory: str) -> list[Store]:
    return [bucket_store(directory, name) for name in buckets(files, directory)]


def _checked(files: Files, store: Store) -> Store:
    """With the seed of its batches, where the folder's name says another or none."""
    named = store.seed
    for segment in store.segments(files):
        with suppress(FileNotFoundError), opened(files, segment.path) as reader:
            if find_good(reader, 0, 0, named):
                return store
            if (seed := find_seed(reader)) is not None:
                return store._replace(seed=seed, kind=JOURNAL if seed == journal.SEED else store.kind)
    return store
