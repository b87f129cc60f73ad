"""What went wrong, in a sentence: out of the pages that Spark, Java and Python's workers say. Knows no command."""

from __future__ import annotations

import re
from typing import Final

from penstock.errors import PenstockError

_OURS: Final = "penstock.errors."
_CALLING: Final = "An error occurred while calling "  # py4j's first line; the second has what it was
_HOLLOW: Final = ("STREAM_FAILED", "TASK_WRITE_FAILED", "Job aborted", "An exception was thrown from the Python worker")
_JAVA: Final = re.compile(r"^(: )?([a-z]+\.)+[A-Z]\w*(Exception|Error): ")
_TRACEBACK: Final = "Traceback (most recent call last):\n"
_CAUSE: Final = "Caused by: "
_CLASS: Final = re.compile(r"^\[[A-Z0-9_.]+\] ")
_STATE: Final = re.compile(r" SQLSTATE: \w+;?")


def sentence(error: Exception) -> str:
    """Ours where it is ours; else the first line, or what is behind one that says only that something failed."""
    if isinstance(error, PenstockError):
        return str(error)
    text = _all(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if ours := [line for line in lines if _OURS in line]:
        return ours[-1].rpartition(_OURS)[2].partition(": ")[2].strip() or ours[-1]
    if lines and lines[0].startswith(_CALLING):
        del lines[0]
    if lines and any(words in lines[0] for words in _HOLLOW):
        causes = [line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)]
        lines = [*_raised(text), *causes[-1:], *lines]
    return _plain(lines[0]) if lines else type(error).__name__


def _all(error: Exception) -> str:
    """With what PySpark knows of the cause and shows nobody."""
    cause = getattr(error, "_cause", None)
    return f"{error}\n{_CAUSE}{getattr(cause, '_stackTrace', None) or cause}" if cause is not None else str(error)


def _raised(text: str) -> list[str]:
    """What Python says below the calls that led to it: the first line that is not set in."""
    _, begins, calls = text.rpartition(_TRACEBACK)
    return [line for line in calls.splitlines() if line and not line[0].isspace()][:1] if begins else []


def _plain(line: str) -> str:
    """Without names of classes and states, which nobody can do anything with."""
    return _STATE.sub("", _CLASS.sub("", _JAVA.sub("", line))).strip(" ;")
