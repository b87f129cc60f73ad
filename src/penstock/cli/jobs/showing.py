"""What a person sees of running jobs: a live line each on a terminal, plain lines elsewhere, JSON on demand."""

from __future__ import annotations

import json
import shutil
import sys
import time
from typing import TYPE_CHECKING, Any, Final, Protocol, TextIO

from penstock.cli.log.showing import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.spark.jobs.watching import Standing

PLAINLY: Final = 10.0  # seconds between plain lines
_CLEAR: Final = "\r\x1b[K"


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


def passing(text: str, stream: TextIO | None = None) -> None:
    """What is done just now, for a person at a terminal; gone with the next, or with an empty one."""
    out = sys.stderr if stream is None else stream
    if out.isatty():
        out.write(f"{_CLEAR}{text}")
        out.flush()


def line(standing: Standing, width: int = 0) -> str:
    parts = [counted(standing.rows, "row"), f"{standing.rate:,.0f} rows/s"]
    if standing.lag is not None:
        parts.append(f"lag {standing.lag:,}")
    if standing.files is not None:
        parts.append(counted(standing.files, "file"))
    return f"{standing.name + ':':{width}} {', '.join(parts)}"


class Live:
    """One line each, written over again and again; what happens is said above them."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._lines: list[str] = []

    def running(self, standings: Sequence[Standing]) -> None:
        width = max(len(each.name) for each in standings) + 1
        # one that is wider than the terminal would be two, and the next not be written over it
        widest = shutil.get_terminal_size().columns - 1
        self._write([line(each, width)[:widest] for each in standings])

    def ended(self, standings: Sequence[Standing]) -> None:
        self.running(standings)

    def note(self, text: str) -> None:
        self._write(self._lines, text)

    def _write(self, lines: list[str], above: str = "") -> None:
        up = f"\x1b[{len(self._lines)}A" if self._lines else ""
        said = [above] if above else []
        self._out.write(up + "".join(f"{_CLEAR}{each}\n" for each in (*said, *lines)))
        self._out.flush()
        self._lines = lines


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
                self._write({"job": each.name, "rows": each.rows, "rate": round(each.rate), **_more(each)})

    def ended(self, standings: Sequence[Standing]) -> None:
        for each in standings:
            self._write({"job": each.name, "rows": each.rows, "rate": round(each.rate), **_more(each), "ended": True})

    def note(self, text: str) -> None:
        self._write({"note": text})

    def _write(self, found: dict[str, Any]) -> None:
        print(json.dumps(found), file=self._out, flush=True)


def _more(standing: Standing) -> dict[str, Any]:
    return {"lag": standing.lag} | ({} if standing.files is None else {"files": standing.files})
