"""A small disk is small, and gone afterwards."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.log.files import Files, write_whole
from tests.kit import small_disk


def overfill(tmp_path: Path, opened: list[int]) -> None:
    """A test that fails with a file open on a disk of 64 KiB."""
    files = Files()
    with small_disk(tmp_path, 1 << 16) as place:
        fd = files.open(f"{place}/a", create=True)
        assert os.path.ismount(place)
        opened.append(fd)
        write_whole(files, fd, bytes(1 << 17), 0)


def test_a_small_disk_is_full_where_it_ends_and_is_unmounted_after_a_failure(tmp_path: Path) -> None:
    opened: list[int] = []
    with pytest.raises(OSError, match="No space left"):
        overfill(tmp_path, opened)
    assert not os.path.ismount(tmp_path / "small-disk")
    os.close(opened.pop())
