"""A real file system with hardly any room, where the machine lets a test mount one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(tmp_path: Path, size: int) -> Iterator[Path]:
    """A directory on a tmpfs of `size` bytes (whole pages); always unmounted. Skips where none may be mounted."""
    place = tmp_path / "small-disk"
    place.mkdir(exist_ok=True)
    if os.geteuid() != 0:
        pytest.skip("no small disk: only root may mount a tmpfs")
    try:
        _run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place))
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no small disk: mounting a tmpfs failed: {getattr(error, 'stderr', '') or error}")
    try:
        yield place
    finally:
        _run("umount", "--lazy", str(place))  # lazy: a descriptor that a failed test left open does not keep it


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
