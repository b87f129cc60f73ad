"""The real files where they do more than one system call."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from penstock.log.files import Files


def only_the_first_page(fd: int, buffers: Sequence[bytearray], position: int, flags: int = 0) -> int:
    """What preadv(RWF_NOWAIT) answers where no page but the first is in memory."""
    data = os.pread(fd, min(len(buffers[0]), max(0, 4096 - position)), position)
    if not data and position < os.fstat(fd).st_size:
        raise BlockingIOError
    buffers[0][: len(data)] = data
    return len(data)


@pytest.mark.parametrize(
    ("size", "position", "found"),
    [
        pytest.param(4096, 0, b"x" * 4096, id="all of it in memory"),
        pytest.param(5000, 0, None, id="a part of it in memory"),
        pytest.param(100, 4096, None, id="nothing of it in memory"),
        pytest.param(9000, 8192, b"", id="the end of the file"),
    ],
)
def test_a_read_that_does_not_wait_gives_all_or_nothing(
    size: int, position: int, found: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a file of two pages, of which the first is in memory
    files = Files()
    fd = files.open(str(tmp_path / "a"), create=True)
    files.write(fd, b"x" * 8192, 0)
    monkeypatch.setattr("penstock.log.files._READ_NOW", 8)
    monkeypatch.setattr(os, "preadv", only_the_first_page)
    # then a read that reaches beyond it is left to a thread, and never looks like the end of the file
    assert files.read_now(fd, size, position) == found
    files.close(fd)
