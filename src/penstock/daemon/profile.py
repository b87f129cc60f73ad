"""Where a thread spends its time: its stack, looked at every few milliseconds. Knows threads and no HTTP."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator
    from types import FrameType

INTERVAL: Final = 0.005


def sample(thread: int, seconds: float, stop: threading.Event) -> Counter[str]:
    """How often each stack of the thread was seen, as flame graphs read them: `outer;inner;innermost`.

    Takes so many seconds, or until `stop` is set: to be called on another thread.
    """
    seen: Counter[str] = Counter()
    for _ in range(max(1, round(seconds / INTERVAL))):
        frame = sys._current_frames().get(thread)
        if frame is not None:
            seen[stack(frame)] += 1
        if stop.wait(INTERVAL):
            break
    return seen


def collapsed(seen: Counter[str]) -> str:
    """A line for each stack, those that were seen most often first."""
    return "".join(f"{stack} {count}\n" for stack, count in seen.most_common())


def stack(frame: FrameType) -> str:
    return ";".join(reversed([_name(each) for each in _outwards(frame)]))


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _name(frame: FrameType) -> str:
    return f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_qualname}"
