"""One line on a terminal that says how far something is; nothing where nobody looks. Knows the clock."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_EVERY: Final = 0.1  # seconds
_CLEAR: Final = "\r\x1b[K"


@contextmanager
def progress(noun: str, stream: TextIO | None = None) -> Iterator[Callable[[str, int], None]]:
    """A function that is told of what it is and how many are done; the line is gone afterwards."""
    out = sys.stderr if stream is None else stream
    if not out.isatty():
        yield lambda _of, _count: None
        return
    line = _Line(noun, out)
    try:
        yield line.tell
    finally:
        out.write(_CLEAR)
        out.flush()


class _Line:
    def __init__(self, noun: str, out: TextIO) -> None:
        self._noun = noun
        self._out = out
        self._start = time.monotonic()
        self._next = 0.0
        self._of = ""

    def tell(self, of: str, count: int) -> None:
        now = time.monotonic()
        if of == self._of and now < self._next:
            return
        self._of, self._next = of, now + _EVERY
        rate = int(count / max(now - self._start, _EVERY))
        self._out.write(f"{_CLEAR}{count:,} {self._noun}, {rate:,} a second, now in {of}")
        self._out.flush()
