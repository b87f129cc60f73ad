"""A checkpoint belongs to one process at a time: a nightly job that finds the last one running is told."""

from __future__ import annotations

import contextlib
import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.errors import BadOption

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def held(name: str, checkpoint: str) -> Iterator[None]:
    """Made where it is not there, and locked; one that is no folder of this machine is left alone."""
    if "://" in checkpoint:
        yield
        return
    try:
        os.makedirs(checkpoint, exist_ok=True)
        folder = os.open(checkpoint, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise BadOption(f"--checkpoint: {checkpoint}: {error.strerror}") from None
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadOption(f"{name} runs already, by {checkpoint}") from None
        yield
    finally:
        with contextlib.suppress(OSError):  # something was noted down there: it is needed
            os.rmdir(checkpoint)
        os.close(folder)
