"""A daemon as a program: options, its log, the loop, signals. Knows nothing of what it serves."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from penstock.daemon import no_memory
from penstock.daemon.logging import Level, Logger
from penstock.errors import BadFlag, BadOption, PenstockError
from penstock.options import load

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from penstock.options import Program

_FILES: Final = 1 << 20


class Logged(Protocol):
    """The options that every daemon has."""

    @property
    def log_prefix(self) -> str: ...
    @property
    def log_level(self) -> Level: ...


T = TypeVar("T", bound=Logged)


def run(
    program: Program[T], serve: Callable[[T, Logger], Coroutine[Any, Any, None]], argv: Sequence[str] | None = None
) -> int:
    """Serve until it ends; the exit code."""
    try:
        options, notes = load(program, sys.argv[1:] if argv is None else argv)
    except BadFlag as error:
        print(f"{program.name}: {error}", file=sys.stderr)
        return error.exit_code
    except BadOption as error:
        Logger(f"[{program.name}] ").fatal("%s", error)
        return error.exit_code
    logger = Logger(options.log_prefix, options.log_level)
    for note in notes:
        logger.warn("%s", note)
    try:
        _run(serve(options, logger))
    except (PenstockError, OSError) as error:
        logger.fatal("%s", error)
        return 1
    return 0


def _run(served: Coroutine[Any, Any, None]) -> None:
    import uvloop

    _raise_file_limit()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        no_memory.watch(runner.get_loop())
        runner.run(served)


def _raise_file_limit() -> None:
    """As many connections and files as the machine allows this user."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else hard
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def stop_signal() -> asyncio.Event:
    """Set when a signal asks to stop. To be called before anything can be seen from outside."""
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    return stopping
