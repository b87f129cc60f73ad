"""Reads beyond the tail, from the page cache: all records in order, and single ones at random."""

from __future__ import annotations

import os
import random
from time import process_time
from typing import TYPE_CHECKING, Final

from zlib_ng.zlib_ng import crc32

from bench.load import BATCH, BODIES, COUNT, Load, fill, folder, new_log
from bench.measure import Row, alternate, micro, millions
from penstock.protocol.batch import HEADER, RECORD, positions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.log.topic_log import TopicLog

_BLOCK: Final = 256 << 10
_TARGET: Final = 5e6  # records a second, on one core


def rows(load: Load) -> Iterator[Row]:
    with folder(load) as directory:
        log = new_log(directory)
        fill(log, load.batches * BATCH)
        log.relax()
        yield _scan(load, log)
        yield _at_random(load, log, f"read by offset, batches of {COUNT}", BATCH)
        log.close_files()
    with folder(load) as directory:
        log = new_log(directory)
        size = HEADER + RECORD + len(BODIES[0])
        fill(log, load.batches * 10 * size, BODIES[:1])
        log.relax()
        yield _at_random(load, log, "read by offset, batches of 1", size)
        log.close_files()


def _scan(load: Load, log: TopicLog) -> Row:
    measured = alternate(lambda: _scan_ours(log), lambda: _scan_plain(log), load.rounds)
    ours, limit = measured.medians
    rate = log.end / ours
    return Row(
        "scan of all records",
        f"{millions(rate)} records, {log.bytes / ours / 1e9:.1f} GB/s",
        f"{log.bytes / limit / 1e9:.1f} GB/s: pread and crc32",
        measured,
        target=f">= {millions(_TARGET)}",
        met=rate >= _TARGET,
        figures={"records a second": rate},
    )


def _scan_ours(log: TopicLog) -> float:
    """Seconds of CPU: it is one core's work, whatever else runs."""
    began = process_time()
    offset = found = 0
    while block := log.read(offset, _BLOCK):
        found += len(positions(block.data, 0, len(block.data)))
        offset = block.next
    seconds = process_time() - began
    if found != log.end:
        raise RuntimeError(f"{found} of {log.end} records were read")
    return seconds


def _scan_plain(log: TopicLog) -> float:
    paths = [segment.path for segment in log.chain.segments]
    began = process_time()
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        position = 0
        while data := os.pread(fd, _BLOCK, position):
            crc32(data)
            position += len(data)
        os.close(fd)
    return process_time() - began


def _at_random(load: Load, log: TopicLog, name: str, size: int) -> Row:
    """One record each: the block with the batch that holds it."""
    chance = random.Random(2)
    offsets = [chance.randrange(log.end) for _ in range(load.reads)]
    measured = alternate(lambda: _read_each(log, offsets), lambda: _pread_each(log, offsets, size), load.rounds)
    ours, limit = measured.medians
    return Row(
        name,
        f"{micro(ours / load.reads)} a read",
        f"{micro(limit / load.reads)}: pread of its {size:,} bytes",
        measured,
        figures={"seconds a read": ours / load.reads},
    )


def _read_each(log: TopicLog, offsets: list[int]) -> float:
    began = process_time()
    for offset in offsets:
        log.read(offset, 1)
    return process_time() - began


def _pread_each(log: TopicLog, offsets: list[int], size: int) -> float:
    """As many reads of as many bytes, at places that are known."""
    fds = [os.open(segment.path, os.O_RDONLY) for segment in log.chain.segments]
    sizes = [segment.position for segment in log.chain.segments]
    places = [(fds[each % len(fds)], each * size % max(1, sizes[each % len(fds)] - size)) for each in offsets]
    began = process_time()
    for fd, position in places:
        os.pread(fd, size, position)
    seconds = process_time() - began
    for fd in fds:
        os.close(fd)
    return seconds
