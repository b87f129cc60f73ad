"""Each row of `make bench` once, with hardly any load: whatever the figures are, the rows still come about."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from bench.__main__ import PARTS, main
from bench.measure import Rounds, alternate

if TYPE_CHECKING:
    from pathlib import Path


MARKS = {
    "spark": [pytest.mark.slow],  # starts Java
    "peer": [pytest.mark.skipif("PEER_NSQD" not in os.environ, reason="PEER_NSQD names no other nsqd")],
}


@pytest.mark.parametrize("part", [pytest.param(part, marks=MARKS.get(part, [])) for part in PARTS])
def test_each_part_gives_its_rows(part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # when a part is measured with hardly any load
    code = main([part, "--quick", f"--directory={tmp_path}", f"--json={tmp_path / 'result.json'}"])
    # then it is no failure, its rows stand on the terminal, and in the file with what they depend on
    result = json.loads((tmp_path / "result.json").read_text())
    shown = capsys.readouterr().out
    assert code == 0
    assert result["rows"]
    assert all(row["name"] in shown and row["figures"] for row in result["rows"])
    assert {"commit", "cpu", "kernel", "python", "build"} <= result["facts"].keys()
    # and nothing else is left
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_rounds_alternate_who_is_first() -> None:
    order: list[str] = []

    def run(name: str, seconds: float) -> float:
        order.append(name)
        return seconds

    # when ours, twice as slow, and the limit are measured in two rounds
    measured = alternate(lambda: run("ours", 2.0), lambda: run("limit", 1.0), 2)
    # then each is first once
    assert order == ["limit", "ours", "ours", "limit"]
    assert measured.ratio == 2


def test_the_ratio_is_the_median_of_the_rounds_and_not_of_their_times() -> None:
    assert Rounds([1.0, 10.0, 100.0], [1.0, 1.0, 100.0]).ratio == 1
