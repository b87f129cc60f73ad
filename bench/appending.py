"""Appends: batches of 200 messages of 200 bytes, beside plain writes of as many bytes to files that roll as ours do."""

from __future__ import annotations

import os
from time import perf_counter
from typing import TYPE_CHECKING, Final

from bench.load import BATCH, BODIES, COUNT, NOW, Load, flush, folder, new_log
from bench.measure import Row, alternate, micro, millions
from penstock.log.tail import LARGEST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.log.topic_log import TopicLog

_ROLL: Final = 100 << 20
_RING: Final = 2 * LARGEST // BATCH
_FRAMED: Final = b"".join(len(body).to_bytes(4, "big") + body for body in BODIES)


def rows(load: Load) -> Iterator[Row]:
    yield _row(load, "append", load.batches, _bodies, flushed=False)
    yield _row(load, "append, as an MPUB brings it", load.batches, _framed, flushed=False)
    yield _row(load, "append, a flush each", load.flushes, _and_flush, flushed=True)


def _bodies(log: TopicLog) -> None:
    log.append(BODIES, NOW)


def _framed(log: TopicLog) -> None:
    log.put_framed(_FRAMED, 0, len(_FRAMED), COUNT, NOW)
    log.write(NOW)


def _and_flush(log: TopicLog) -> None:
    log.append(BODIES, NOW)
    flush(log)


def _row(load: Load, name: str, batches: int, append: Callable[[TopicLog], None], *, flushed: bool) -> Row:
    measured = alternate(
        lambda: _ours(load, batches, append), lambda: _plain(load, batches, flushed=flushed), load.rounds
    )
    ours, limit = measured.medians
    return Row(
        name,
        f"{micro(ours / batches)} a batch, {millions(batches * COUNT / ours)}",
        f"{micro(limit / batches)}: {'pwrite and fdatasync' if flushed else 'pwrite'}",
        measured,
        target="<= 1.5",
        met=measured.ratio <= 1.5,
        figures={"seconds a batch": ours / batches, "messages a second": batches * COUNT / ours},
    )


def _ours(load: Load, batches: int, append: Callable[[TopicLog], None]) -> float:
    with folder(load) as directory:
        log = new_log(directory, max_bytes_per_file=_ROLL)
        began = perf_counter()
        for _ in range(batches):
            append(log)
        seconds = perf_counter() - began
        log.close_files()
    return seconds


def _plain(load: Load, batches: int, *, flushed: bool) -> float:
    """From a ring as large as what our tail goes through: bytes that are always the same lie in the nearest cache."""
    ring = memoryview(bytearray(_RING * BATCH))
    data = [ring[at : at + BATCH] for at in range(0, _RING * BATCH, BATCH)]
    with folder(load) as directory:
        number, position = 0, _ROLL
        fd = -1
        began = perf_counter()
        for batch in range(batches):
            if position + BATCH > _ROLL:
                if fd >= 0:
                    os.close(fd)
                fd = os.open(f"{directory}/{number}", os.O_RDWR | os.O_CREAT)
                number, position = number + 1, 0
            os.pwrite(fd, data[batch % _RING], position)
            if flushed:
                os.fdatasync(fd)
            position += BATCH
        seconds = perf_counter() - began
        os.close(fd)
    return seconds
