"""docs/guarantees.md names each nemesis, what it does and what it may cost: what the checker holds it to."""

from __future__ import annotations

from pathlib import Path

from tests.torture.nemeses import NEMESES

PAGE = Path("docs/guarantees.md")


def test_the_page_has_a_row_for_each_nemesis_and_no_others() -> None:
    table = PAGE.read_text().partition("| nemesis | does |")[2].partition("\n\n")[0].splitlines()[2:]
    expected = []
    for nemesis in NEMESES.values():
        does = " ".join((nemesis.__doc__ or "").split()).rstrip(".")
        expected.append(f"| `{nemesis.name}` | {does} | {nemesis.costs} |")
    assert table == expected
