"""Durations as Go writes them: `1m30s`, `500ms`, `1.5h`, `-2s`. Counts nanoseconds, as all times in the log."""

from __future__ import annotations

import re
from typing import Final, NewType

Duration = NewType("Duration", int)  # nanoseconds

LONGEST: Final = (1 << 63) - 1
SECOND: Final = 10**9
_UNITS: Final = {
    "h": 3600 * SECOND,
    "m": 60 * SECOND,
    "s": SECOND,
    "ms": 10**6,
    "us": 10**3,
    "\u00b5s": 10**3,  # the micro sign
    "\u03bcs": 10**3,  # the Greek letter
    "ns": 1,
}
_PART: Final = re.compile(r"([0-9]{0,20})(?:\.([0-9]{0,20}))?([a-z\u00b5\u03bc]+)")


def duration(text: str) -> Duration:
    """The duration that `text` says; ValueError with a sentence when it says none."""
    sign, rest = (-1, text[1:]) if text[:1] == "-" else (1, text.removeprefix("+"))
    if rest == "0":
        return Duration(0)
    if rest.isascii() and rest.isdigit():
        raise ValueError(f"a duration needs a unit, as in {rest}s or {rest}ms")
    total = sign * _sum(text, rest)
    if not -LONGEST - 1 <= total <= LONGEST:
        raise ValueError(f"{text!r} is longer than any duration may be (about 292 years)")
    return Duration(total)


def _sum(text: str, rest: str) -> int:
    total = at = 0
    while at < len(rest) or not rest:
        part = _PART.match(rest, at)
        if part is None or part[3] not in _UNITS or not (part[1] or part[2]):
            raise ValueError(f"{text!r} is not a duration, such as 1m30s, 500ms or 1.5h")
        unit, fraction = _UNITS[part[3]], part[2] or ""
        total += int(part[1] or "0") * unit + int(fraction or "0") * unit // 10 ** len(fraction)
        at = part.end()
    return total


def as_text(value: Duration) -> str:
    """The shortest usual way to write it; `duration` reads the same value back."""
    if abs(value) < SECOND:
        unit = next((name for name in ("ms", "us") if abs(value) >= _UNITS[name]), "ns")
        return f"{_decimal(value, _UNITS[unit])}{unit}" if value else "0s"
    sign, rest = ("-", -value) if value < 0 else ("", int(value))
    hours, rest = divmod(rest, _UNITS["h"])
    minutes, rest = divmod(rest, _UNITS["m"])
    parts = ((hours, f"{hours}h"), (minutes, f"{minutes}m"), (rest, f"{_decimal(rest, SECOND)}s"))
    return sign + "".join(part for number, part in parts if number)


def _decimal(value: int, unit: int) -> str:
    """So many units, a power of ten of ns each, exactly."""
    whole, below = divmod(abs(value), unit)
    fraction = f".{below:0{len(str(unit)) - 1}}".rstrip("0").rstrip(".") if below else ""
    return f"{'-' * (value < 0)}{whole}{fraction}"
