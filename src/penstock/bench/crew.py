"""The processes of a load: made ready, started at one moment, and their outcomes. Knows no socket and no load.

spawn --ready--> all are --go--> work --outcome--> gone
"""

from __future__ import annotations

import multiprocessing
import resource
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias

from penstock.bench.histogram import Histogram
from penstock.errors import BenchFailed

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


@dataclass
class Outcome:
    """What one process has done."""

    messages: int = 0
    again: int = 0  # of these, not delivered for the first time
    began: float = 0.0  # seconds on the machine's monotonic clock
    ended: float = 0.0  # when the last message was
    cpu: float = 0.0  # seconds, without the set-up
    by_second: list[int] = field(default_factory=list)  # messages in each whole second
    latencies: Histogram = field(default_factory=Histogram)  # ns, where the load times each message
    late: Histogram = field(default_factory=Histogram)  # ns, by which the load itself was late


Work: TypeAlias = Callable[
    ..., Outcome
]  # takes its arguments and `ready`, which it calls once, between set-up and load


def together(work: list[tuple[Work, tuple[Any, ...]]]) -> list[Outcome]:
    """Each work in a process of its own, all started when the last one is ready."""
    context = multiprocessing.get_context("spawn")
    crew = []
    for function, arguments in work:
        ours, theirs = context.Pipe()
        process = context.Process(target=_in_a_child, args=(theirs, function, arguments), daemon=True)
        process.start()
        theirs.close()
        crew.append((process, ours))
    try:
        for _, pipe in crew:
            _next(pipe)
        for _, pipe in crew:
            pipe.send("go")
        return [_next(pipe) for _, pipe in crew]
    finally:
        for process, pipe in crew:
            pipe.close()
            process.terminate()
            process.join()


def rate(outcomes: list[Outcome]) -> float:
    """Messages a second, from the first one's start to the last one's end."""
    seconds = max(each.ended for each in outcomes) - min(each.began for each in outcomes)
    return sum(each.messages for each in outcomes) / seconds if seconds > 0 else 0.0


def _next(pipe: Connection) -> Any:
    try:
        found = pipe.recv()
    except EOFError as error:
        raise BenchFailed("a process of the load ended without an outcome") from error
    if isinstance(found, BenchFailed):
        raise found
    return found


def _in_a_child(pipe: Connection, work: Work, arguments: tuple[Any, ...]) -> None:
    started = [0.0, 0.0]

    def ready() -> None:
        pipe.send("ready")
        pipe.recv()
        started[:] = monotonic(), _cpu()

    try:
        outcome = work(*arguments, ready=ready)
        outcome.began = started[0]
        outcome.cpu = _cpu() - started[1]
        pipe.send(outcome)
    except BenchFailed as error:
        pipe.send(error)
    except (EOFError, KeyboardInterrupt):  # whoever started it is gone
        pass


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
