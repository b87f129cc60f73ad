"""Slow work for a thread: flushes, copies, deletions. Knows no thread and no loop; whoever drives a log brings them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable


class Work:
    """Steps to `run` on any thread, in order, and what to do where it was made once they are through: `finish`.

    A step touches descriptors that were pinned for it and nothing else. The first one that raises OSError is the last.
    """

    __slots__ = ("_done", "_steps", "_undone", "error", "finished")

    def __init__(self) -> None:
        self._steps: list[Callable[[], None]] = []
        self._done: list[Callable[[], None]] = []
        self._undone: list[Callable[[OSError], None]] = []
        self.error: OSError | None = None
        self.finished = False

    def __bool__(self) -> bool:
        return bool(self._steps)

    def step(self, do: Callable[[], None]) -> None:
        self._steps.append(do)

    def then(self, do: Callable[[], None]) -> None:
        """What follows when every step went well."""
        self._done.append(do)

    def otherwise(self, do: Callable[[OSError], None]) -> None:
        """What follows when one did not."""
        self._undone.append(do)

    def drop(self) -> None:
        """It will not be run: let go of what it holds."""
        self.error = OSError(errno.ECANCELED, os.strerror(errno.ECANCELED))
        self.finish()

    def run(self) -> None:
        try:
            for step in self._steps:
                step()
        except OSError as error:
            self.error = error

    def finish(self) -> None:
        """In the thread that made it, after `run`."""
        self.finished = True
        if self.error is None:
            for done in self._done:
                done()
        else:
            for undone in self._undone:
                undone(self.error)

    def __call__(self) -> None:
        """Run and finish here and now."""
        self.run()
        self.finish()
