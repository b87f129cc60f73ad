"""The tables of figures in the pages are those of the newest results."""

from __future__ import annotations

import json
import runpy

import pytest

import hot_modules

FIGURES = runpy.run_path(str(hot_modules.ROOT / "scripts" / "figures.py"))


@pytest.mark.parametrize("page", ["README.md", "docs/performance.md"])
def test_the_tables_are_made_from_the_newest_results(page: str) -> None:
    text = (hot_modules.ROOT / page).read_text(encoding="utf-8")
    results = json.loads(FIGURES["newest"]().read_text(encoding="utf-8"))
    assert FIGURES["filled"](text, results) == text
    assert results["facts"]["commit"] in text


def test_a_round_that_was_slower_is_told_as_well() -> None:
    # given three rounds in one of which ours took longer
    row = {
        "name": "MPUB; peer: memory",
        "ratios": [0.5, 2.0, 0.4],
        "figures": {"times as fast": 2.0, "wanted": 1.8, "CPU a message, to the peer's": 0.555},
    }
    # then the table has the median, and the slowest and the fastest
    table = FIGURES["against_the_peer"]({"rows": [row]})
    assert table.splitlines()[-1] == "| MPUB | memory | 2.00 [0.50, 2.50] | 1.8 | 0.56 |"
