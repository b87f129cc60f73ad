"""What rounds say together, and how it is told."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from penstock.bench.chart import bars
from penstock.bench.figures import Figure, medians, ratio_table, ratios, shown, table


def rounds(*values: float) -> list[list[Figure]]:
    return [[Figure("published", value, "messages/s")] for value in values]


def test_the_ratio_is_the_median_of_the_rounds() -> None:
    # given three rounds, in the last of which both servers were disturbed alike
    (found,) = ratios(rounds(20, 22, 2), rounds(10, 10, 1))
    # then that changes nothing
    assert (found.median, sorted(found.rounds)) == (2.0, [2.0, 2.0, 2.2])
    assert (found.a, found.b) == (20, 10)


def test_what_the_other_has_none_of_has_no_ratio() -> None:
    assert ratios(rounds(1, 1), rounds(1, 0)) == []


def test_rounds_of_one_server_give_their_medians() -> None:
    assert medians(rounds(1, 100, 3)) == [Figure("published", 3, "messages/s")]


def test_a_table_has_its_numbers_below_each_other() -> None:
    lines = table([Figure("published", 1234567.8, "messages/s"), Figure("memory", 3.5, "MB")])
    assert lines == ["published  1,234,568  messages/s", "memory           3.5  MB"]


def test_a_table_of_ratios_says_where_less_is_better() -> None:
    found = ratios([[Figure("memory", 1.0, "MB", less=True)]], [[Figure("memory", 4.0, "MB", less=True)]])
    assert ratio_table(found)[1].split("  ") == ["memory", "1", "4", "MB", " 0.25", "0.25 to 0.25, less is better"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (3.0, "3"), (0.01234, "0.0123"), (12.345, "12.3"), (123.4, "123"), (1234567.8, "1,234,568")],
)
def test_numbers_have_as_many_digits_as_one_reads(value: float, text: str) -> None:
    assert shown(value) == text


def test_a_chart_has_a_bar_for_each_server_and_figure_and_is_xml() -> None:
    # given two servers, with names and figures that XML minds, one of them 0
    figures = [
        [Figure("<in>", 1.0, "a & b"), Figure("out", 0.0, "")],
        [Figure("<in>", 2.0, "a & b"), Figure("out", 0.0, "")],
    ]
    # when they are drawn
    root = ElementTree.fromstring(bars("pub", ["a<b", "c"], figures))
    # then there are a bar each and one beside each server's name, over the background
    assert len(root.findall("{*}rect")) == 1 + 2 + 4
    assert "<in>" in [text.text for text in root.findall("{*}text")]
