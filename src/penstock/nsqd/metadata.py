"""`nsqd.dat`: topics and channels as the original writes them down, for those who read it. Not what is true.

The journal is. The file says which state of the journal it was written from, so that one that somebody edited or
brought from an original nsqd is told from our own: its topics and channels are made when they are not there.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from zlib_ng.zlib_ng import crc32

from penstock.log.files import read_whole, replace

if TYPE_CHECKING:
    from penstock.log.files import Files

NAME: Final = "nsqd.dat"
OURS: Final = "penstock"


Topic: TypeAlias = tuple[str, bool, list[tuple[str, bool]]]  # name, paused, and so its channels


def encode(found: list[Topic], version: str) -> bytes:
    """The original's keys, and a mark of ours that it passes over."""
    topics = [
        {"name": name, "paused": paused, "channels": [{"name": c, "paused": p} for c, p in channels]}
        for name, paused, channels in found
    ]
    return json.dumps({"topics": topics, "version": version, OURS: _mark(topics)}, separators=(",", ":")).encode()


def _mark(topics: list[dict[str, Any]]) -> int:
    return crc32(json.dumps(topics, sort_keys=True).encode())


def write(files: Files, folder: str, data: bytes) -> None:
    replace(files, f"{folder}/{NAME}", data)


def read(files: Files, folder: str) -> tuple[list[dict[str, Any]], bool]:
    """The topics of the file, and whether it is as we wrote it; ValueError where it is no such file."""
    try:
        data = json.loads(read_whole(files, f"{folder}/{NAME}"))
    except FileNotFoundError:
        return [], True
    if not isinstance(data, dict):
        raise ValueError("no JSON object")
    topics = data.get("topics") or []
    return topics, data.get(OURS) == _mark(topics)
