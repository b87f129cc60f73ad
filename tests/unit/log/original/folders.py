"""Writes the original's files byte by byte, with nothing of the code that is tested."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence

from penstock.log.files import Files, write_whole
from tests.kit import MemoryFiles

FOLDER = "/nsqd"
START = 1_700_000_000_000_000_000  # of the timestamps


def record(n: int, body: bytes | None = None, *, attempts: int = 0, time: int | None = None) -> bytes:
    """The nth message's record; unless named, its body tells which it is."""
    whole = body if body is not None else b"body of %d" % n
    timestamp = START + n if time is None else time
    return struct.pack(">IQH16s", 26 + len(whole), timestamp, attempts, b"%016x" % n) + whole


def records(*numbers: int, attempts: int = 0) -> bytes:
    return b"".join(record(n, attempts=attempts) for n in numbers)


def folder(*topics: str, channels: Sequence[str] = ()) -> MemoryFiles:
    """A folder whose nsqd.dat lists these topics, each with these channels."""
    files = MemoryFiles()
    files.make_directory(FOLDER)
    listed = [{"name": topic, "paused": False, "channels": [{"name": name} for name in channels]} for topic in topics]
    put(files, "nsqd.dat", json.dumps({"topics": listed, "version": "1.3.0"}).encode())
    return files


def put(files: Files, name: str, data: bytes) -> None:
    fd = files.open(f"{FOLDER}/{name}", create=True, truncate=True)
    write_whole(files, fd, data, 0)
    files.close(fd)


def put_queue(
    files: Files,
    name: str,
    *contents: bytes,
    first: int = 0,
    depth: int | None = None,
    read_at: int = 0,
    write_at: int | None = None,
) -> None:
    """Data files with these contents from number `first` on, and a meta file that reads from the first to the end."""
    for number, content in enumerate(contents, first):
        put(files, f"{name}.diskqueue.{number:06d}.dat", content)
    end = len(contents[-1]) if write_at is None else write_at
    if depth is None:
        depth = sum(map(count, contents)) - count(contents[0][:read_at])
    put_meta(files, name, depth, (first, read_at), (first + len(contents) - 1, end))


def put_meta(files: Files, name: str, depth: int, read: tuple[int, int], write: tuple[int, int]) -> None:
    text = f"{depth}\n{read[0]},{read[1]}\n{write[0]},{write[1]}\n"
    put(files, f"{name}.diskqueue.meta.dat", text.encode())


def count(data: bytes) -> int:
    """How many whole records stand in a row."""
    found = at = 0
    while at + 4 <= len(data) and at + 4 + int.from_bytes(data[at : at + 4]) <= len(data):
        at += 4 + int.from_bytes(data[at : at + 4])
        found += 1
    return found
