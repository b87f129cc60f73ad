"""Files that know how long their calls took."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.nsqd.meters import Meters
from penstock.nsqd.timed_files import SLOW, TimedFiles

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_write_that_took_long_is_told_of_until_one_did_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a clock that moves with each look at it, as much as the test says
    clock = {"now": 0, "step": 0}

    def look() -> int:
        clock["now"] += clock["step"]
        return clock["now"]

    monkeypatch.setattr("penstock.nsqd.timed_files.time.monotonic_ns", look)
    files = TimedFiles(Meters().flushes)
    fd = files.open(str(tmp_path / "file"), create=True)
    assert not files.slow
    # when a write takes long, then it is slow; and no more after a fast one
    for step, slow in ((SLOW + 1, True), (SLOW, False)):
        clock["step"] = step
        assert files.write(fd, b"data", 0) == 4
        assert files.slow is slow
    files.close(fd)


def test_flushes_are_counted_with_their_durations(tmp_path: Path) -> None:
    meters = Meters()
    files = TimedFiles(meters.flushes)
    fd = files.open(str(tmp_path / "file"), create=True)
    files.flush(fd)
    assert sum(meters.flushes.counts) == 1
    assert meters.flushes.total > 0
    files.close(fd)
