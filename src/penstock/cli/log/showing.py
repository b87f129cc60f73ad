"""How times, sizes, bodies and damage look to a person and to a program; and how a person writes a time."""

from __future__ import annotations

import argparse
import base64
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from penstock.log.data_path import JOURNAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.log.index import Gap


def moment(time: int) -> str:
    """RFC 3339 in UTC, to the microsecond."""
    seconds, ns = divmod(time, 10**9)
    try:
        whole = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return f"{time} ns"  # no calendar goes there: a damaged record's
    return f"{whole}.{ns // 1000:06d}Z"


def parse_moment(text: str) -> int:
    """A time as RFC 3339 has it, in ns; without a zone it is UTC."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no time such as 2026-01-31T23:59:59Z") from error
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    since = time - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86400 + since.seconds) * 10**9 + since.microseconds * 1000


def size(count: int) -> str:
    """Bytes, short."""
    if count < 1000:
        return f"{count} B"
    for unit in ("kB", "MB", "GB"):
        count_in_unit = count / 1000 ** ("kB", "MB", "GB").index(unit) / 1000
        if count_in_unit < 1000:
            break
    return f"{count_in_unit:.1f} {unit}"


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def records(count: int, kind: str = "") -> str:
    """How many of what a store of this kind holds."""
    if kind != JOURNAL:
        return counted(count, "record")
    return f"{count:,} {'entry' if count == 1 else 'entries'}"


def preview(body: bytes, width: int) -> str:
    """The beginning of a body on one line, whatever is in it."""
    text = body[: 4 * width].decode("utf-8", "backslashreplace")
    shown = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
    return shown if len(shown) <= width and len(body) <= 4 * width else shown[: width - 1] + "…"


def body_fields(body: bytes) -> dict[str, str]:
    """For JSON: as text where it is UTF-8, else as base64."""
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"body64": base64.b64encode(body).decode()}


def offsets(first: int, end: int) -> str:
    """`[first, end)`, and the verb that goes with as many."""
    return f"offset {first} is" if end == first + 1 else f"offsets {first} to {end - 1} are"


def gap(found: Gap, *, missing: bool = False) -> str:
    """What was damaged, and which offsets went with it."""
    lost = f"{offsets(found.first, found.next)} lost" if found.next > found.first else "no offset is known lost"
    if missing:
        return f"the file is missing: {lost}"
    if found.stop == found.position:
        return f"it ends at byte {found.position}, and went further: {lost}"
    return f"bytes {found.position} to {found.stop} are bad: {lost}"


def aligned(rows: Sequence[Sequence[str]], right: Iterable[int] = ()) -> Iterable[str]:
    """Rows of cells as lines, columns below each other; those in `right` end together."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rights = set(right)
    for row in rows:
        cells = [
            cell.rjust(width) if number in rights else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
