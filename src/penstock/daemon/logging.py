"""Log lines in NSQ's style: `[nsqd] 2026/01/02 15:04:05.123456 INFO: TCP: listening on 127.0.0.1:4150`.

Writing a line never waits and never fails: what standard error does not take at once is dropped, counted, and the
next line that it takes says how many were.
"""

from __future__ import annotations

import os
import select
import time
from contextlib import suppress
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from penstock.options import Words

if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK: Final = 4096  # a pipe that can be written to takes that much at once


class Level(IntEnum):
    """NSQ's numbers, which its HTTP API shows."""

    DEBUG = 1
    INFO = 2
    WARN = 3
    ERROR = 4
    FATAL = 5


DEBUG, INFO, WARN, ERROR = Level.DEBUG, Level.INFO, Level.WARN, Level.ERROR
LEVEL: Final = Words({level.name.lower(): level for level in Level})  # as an option says it

# A line's text holds what clients sent: behind a newline stands a tab, so that no text can pass for a line of its own
_HARMLESS: Final = {**{code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}, 9: "\t", 10: "\n\t"}


class Logger:
    """Lines of `level` and above; the level may be set at any time.

    The text is formatted with `%` and the values, when there are values, and only if the line is written. Where even
    the call is too much: `if log.level <= DEBUG`.
    """

    __slots__ = ("_clock", "_second", "_stamp", "_write", "dropped", "level", "prefix")

    def __init__(
        self,
        prefix: str,
        level: Level = INFO,
        *,
        write: Callable[[bytes], bool] | None = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self.prefix = prefix
        self.level = level
        self.dropped = 0
        self._write = StandardError().write if write is None else write
        self._clock = clock
        self._second = -1
        self._stamp = ""

    def debug(self, text: str, *values: object) -> None:
        if self.level <= DEBUG:
            self._line("DEBUG", text % values if values else text)

    def info(self, text: str, *values: object) -> None:
        if self.level <= INFO:
            self._line("INFO", text % values if values else text)

    def warn(self, text: str, *values: object) -> None:
        if self.level <= WARN:
            self._line("WARNING", text % values if values else text)

    def error(self, text: str, *values: object) -> None:
        if self.level <= ERROR:
            self._line("ERROR", text % values if values else text)

    def fatal(self, text: str, *values: object) -> None:
        """Only writes: who calls it leaves."""
        self._line("FATAL", text % values if values else text)

    def _line(self, name: str, text: str) -> None:
        if self.dropped and self._put("WARNING", f"LOG: {self.dropped} lines were dropped, nobody read them"):
            self.dropped = 0
        if self.dropped or not self._put(name, text):
            self.dropped += 1

    def _put(self, name: str, text: str) -> bool:
        if not text.isprintable():
            text = text.translate(_HARMLESS)
        line = f"{self.prefix}{self._now()} {name}: {text}\n"
        return self._write(line.encode("utf-8", "backslashreplace"))

    def _now(self) -> str:
        second, below = divmod(self._clock(), 10**9)
        if second != self._second:
            self._second = second
            self._stamp = time.strftime("%Y/%m/%d %H:%M:%S", time.localtime(second))
        return f"{self._stamp}.{below // 1000:06}"


class StandardError:
    """Standard error, or whatever this descriptor is, as something that never makes its writer wait."""

    def __init__(self, descriptor: int = 2) -> None:
        _occupy_standard_descriptors()
        self._descriptor = descriptor
        self._torn = False
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)

    def write(self, line: bytes) -> bool:
        """Whether the line went out; one that stopped in its middle did not."""
        rest = b"\n" + line if self._torn else line
        try:
            while rest and self._takes():
                rest = rest[os.write(self._descriptor, rest[:CHUNK]) :]
                self._torn = bool(rest)
        except OSError:
            return False
        return not rest

    def _takes(self) -> bool:
        return any(event & select.POLLOUT for _, event in self._poll.poll(0))


def _occupy_standard_descriptors() -> None:
    """Give /dev/null the places that are free among 0, 1 and 2.

    Else, in a process that was started without them, the next file to be opened, a segment say, becomes standard error.
    """
    with suppress(OSError):
        while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(descriptor)
