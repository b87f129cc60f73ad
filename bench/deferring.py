"""Deferred messages that are all due within one second: moved into the log, and how long one call holds the loop."""

from __future__ import annotations

import random
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, Final

from bench.child import in_a_child, peak, resident
from bench.load import BODIES, COUNT, NOW, Load, flush, folder, new_log
from bench.measure import Row, millions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SECOND: Final = 1_000_000_000
_DELAY: Final = 30 * _SECOND
_FLUSH: Final = 100  # slices between flushes
_BOUND: Final = 0.02


def rows(load: Load) -> Iterator[Row]:
    batches = max(1, load.messages // COUNT)
    with folder(load) as directory:
        found = in_a_child(defer_and_move, directory, batches)
    yield Row(
        f"{batches * COUNT:,} deferred, due within a second",
        f"deferred {millions(batches * COUNT / found['defer'])}, moved {millions(batches * COUNT / found['move'])}; "
        f"{found['longest'] * 1e3:.1f} ms of CPU the longest call of the loop; {found['memory'] / 1e6:.0f} MB more",
        "all on one thread, flushes too",
        target="< 20 ms",
        met=found["longest"] < _BOUND,
        figures=found,
    )


def defer_and_move(directory: str, batches: int) -> dict[str, float]:
    log, rng, start = new_log(directory), random.Random(1), resident()
    began = perf_counter()
    for number in range(batches):
        log.defer(BODIES, NOW + _DELAY + rng.randrange(_SECOND), NOW)
        if number % 1000 == 999:
            flush(log)
    flush(log)
    deferred = perf_counter()
    longest = 0.0

    def timed(call: Callable[..., object], *arguments: object) -> object:
        nonlocal longest
        before = thread_time()
        answer = call(*arguments)
        longest = max(longest, thread_time() - before)
        return answer

    slices = now = 0
    while (look := log.next_due) is not None:
        now = NOW + _DELAY + _SECOND if look >= NOW + _DELAY else max(now, look)
        while work := log.timetable.prepare(now):
            work.run()
            timed(work.finish)
        slices += bool(timed(log.move_due, now))
        if slices % _FLUSH == 0:
            flush(log)
    flush(log)
    if log.end != batches * COUNT:
        raise RuntimeError(f"only {log.end} of {batches * COUNT} messages were moved")
    moved = perf_counter()
    log.close()
    return {
        "defer": deferred - began,
        "move": moved - deferred,
        "longest": longest,
        "memory": float(peak() - start),
    }
