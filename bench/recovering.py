"""Opening a topic of 1 GiB: by its index, after a kill, and with the index lost, beside reading it and its CRC."""

from __future__ import annotations

import os
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Final

from zlib_ng.zlib_ng import crc32

from bench.load import Load, fill, folder, new_log
from bench.measure import Row, alternate
from penstock.log.disk import Disk
from penstock.log.topic_log import TopicLog

if TYPE_CHECKING:
    from collections.abc import Iterator

_WINDOW: Final = 1 << 20


def rows(load: Load) -> Iterator[Row]:
    with folder(load) as directory:
        log = new_log(directory)
        fill(log, load.topic)
        end = log.end
        log.close()
        yield _with_index(load, log.directory, end)
        yield _without_index(load, log.directory, end)


def _with_index(load: Load, directory: str, end: int) -> Row:
    times = [_open(directory, end) for _ in range(load.rounds)]
    return Row(
        f"recovery of {_size(directory)} with its index",
        f"{median(times) * 1e3:.1f} ms",
        target="< 200 ms",
        met=median(times) < 0.2,
        figures={"seconds": median(times)},
    )


def _without_index(load: Load, directory: str, end: int) -> Row:
    measured = alternate(lambda: _open_bare(directory, end), lambda: _read_and_check(directory), load.rounds)
    ours, limit = measured.medians
    return Row(
        f"recovery of {_size(directory)} without",
        f"{ours:.2f} s",
        f"{limit:.2f} s: pread and crc32",
        measured,
        target="<= 2.0",
        met=measured.ratio <= 2,
        figures={"seconds": ours},
    )


def _open(directory: str, end: int) -> float:
    began = perf_counter()
    log = TopicLog.open(Disk(), directory)
    seconds = perf_counter() - began
    if log.end != end:
        raise RuntimeError(f"{log.end} of {end} records were recovered")
    log.close()
    return seconds


def _open_bare(directory: str, end: int) -> float:
    for name in os.listdir(directory):
        if name.endswith(".index"):
            os.unlink(f"{directory}/{name}")
    return _open(directory, end)


def _read_and_check(directory: str) -> float:
    began = perf_counter()
    for name in sorted(os.listdir(directory)):
        if name.endswith(".log"):
            fd = os.open(f"{directory}/{name}", os.O_RDONLY)
            position = 0
            while data := os.pread(fd, _WINDOW, position):
                crc32(data)
                position += len(data)
            os.close(fd)
    return perf_counter() - began


def _size(directory: str) -> str:
    size = sum(os.stat(f"{directory}/{name}").st_size for name in os.listdir(directory) if name.endswith(".log"))
    return f"{size / (1 << 30):.1f} GiB" if size >= 1 << 29 else f"{size >> 20} MiB"
