"""What a person sees of running jobs: a live line each on a terminal, plain lines elsewhere, JSON on demand."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any, Final, Protocol, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.spark.jobs.watching import Standing

PLAINLY: Final = 10.0  # seconds between plain lines


class Show(Protocol):
    def running(self, standings: Sequence[Standing]) -> None:
        """How they are, some times a second."""

    def ended(self, standings: Sequence[Standing]) -> None:
        """How they were in the end."""

    def note(self, text: str) -> None:
        """Something that happened."""


def show_for(*, as_json: bool, stream: TextIO | None = None) -> Show:
    out = sys.stdout if stream is None else stream
    if as_json:
        return AsJson(out)
    return Live(out) if out.isatty() else Plain(out)


def line(standing: Standing) -> str:
    parts = [f"{standing.rows:,} rows", f"{standing.rate:,.0f} rows/s"]
    if standing.lag is not None:
        parts.append(f"lag {standing.lag:,}")
    return f"{standing.name}: {', '.join(parts)}"


class Live:
    """One line each, written over again and again."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._lines = 0

    def running(self, standings: Sequence[Standing]) -> None:
        up = f"\x1b[{self._lines}A" if self._lines else ""
        self._out.write(up + "".join(f"\r\x1b[K{line(each)}\n" for each in standings))
        self._out.flush()
        self._lines = len(standings)

    def ended(self, standings: Sequence[Standing]) -> None:
        self.running(standings)

    def note(self, text: str) -> None:
        self._out.write(f"\r\x1b[K{text}\n")
        self._out.flush()
        self._lines = 0


class Plain:
    """A line now and then, when there is something new."""

    def __init__(self, out: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._out = out
        self._clock = clock
        self._next = 0.0
        self._last: dict[str, int] = {}

    def running(self, standings: Sequence[Standing]) -> None:
        if self._clock() < self._next:
            return
        for each in standings:
            if self._last.get(each.name) != each.rows and each.batches:
                self._last[each.name] = each.rows
                self._next = self._clock() + PLAINLY
                self.note(line(each))

    def ended(self, standings: Sequence[Standing]) -> None:
        for each in standings:
            self.note(line(each))

    def note(self, text: str) -> None:
        print(text, file=self._out, flush=True)


class AsJson:
    """An object a line."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._last: dict[str, int] = {}

    def running(self, standings: Sequence[Standing]) -> None:
        for each in standings:
            if self._last.get(each.name, 0) != each.batches:
                self._last[each.name] = each.batches
                self._write({"job": each.name, "rows": each.rows, "rate": round(each.rate), "lag": each.lag})

    def ended(self, standings: Sequence[Standing]) -> None:
        for each in standings:
            self._write({"job": each.name, "rows": each.rows, "lag": each.lag, "ended": True})

    def note(self, text: str) -> None:
        self._write({"note": text})

    def _write(self, found: dict[str, Any]) -> None:
        print(json.dumps(found), file=self._out, flush=True)
