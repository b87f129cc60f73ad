"""What `/log` makes of a log's holes."""

from __future__ import annotations

import pytest

from penstock.log.chain import Hole
from penstock.nsqd.http.log import _merged


@pytest.mark.parametrize(
    ("holes", "expected"),
    [
        pytest.param([], [], id="none"),
        pytest.param([(0, 2, "emptied"), (2, 5, "emptied")], [(0, 5, "emptied")], id="touching"),
        pytest.param([(0, 2, "emptied"), (2, 5, "lost")], [(0, 2, "emptied"), (2, 5, "lost")], id="other-reasons"),
        pytest.param([(0, 9, "lost"), (2, 5, "emptied")], [(0, 9, "lost")], id="inside"),
        pytest.param([(0, 4, "emptied"), (2, 9, "lost")], [(0, 4, "emptied"), (4, 9, "lost")], id="overlapping"),
        pytest.param([(0, 1, "lost"), (3, 4, "lost")], [(0, 1, "lost"), (3, 4, "lost")], id="apart"),
    ],
)
def test_no_hole_is_told_twice_and_each_says_why(
    holes: list[tuple[int, int, str]], expected: list[tuple[int, int, str]]
) -> None:
    assert _merged([Hole(*hole) for hole in holes]) == expected
