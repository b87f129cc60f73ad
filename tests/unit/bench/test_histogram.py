"""A histogram is right to 1.6 %, wherever its values are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.bench.histogram import Histogram

VALUES = st.lists(st.integers(0, 1 << 62), min_size=1)


@given(VALUES, st.floats(0.01, 100))
def test_a_percentile_is_that_of_the_sorted_values_or_a_little_more(values: list[int], percent: float) -> None:
    # given values, and the one that so many are no larger than
    right = next(value for number, value in enumerate(sorted(values), 1) if number >= len(values) * percent / 100)
    # then the histogram says the same, and never less
    assert right <= Histogram(values).at(percent) <= right + right // 64


@given(VALUES, VALUES)
def test_two_of_them_become_the_one_of_all(some: list[int], others: list[int]) -> None:
    merged = Histogram(some)
    merged.merge(Histogram(others))
    both = Histogram(some + others)
    assert (merged.counts, merged.largest, len(merged)) == (both.counts, both.largest, len(some) + len(others))


def test_small_numbers_and_the_largest_are_exact() -> None:
    found = Histogram([*range(128), 1_000_003])
    assert [found.at(100 * number / 129) for number in (1, 64, 128)] == [0, 63, 127]
    assert found.at(100) == found.largest == 1_000_003


def test_figures_are_in_milliseconds() -> None:
    figures = Histogram([1_000_000] * 99 + [5_000_000]).figures("to receipt")
    assert [(each.name, round(each.value, 1)) for each in figures] == [
        ("to receipt p50", 1.0), ("to receipt p99", 1.0), ("to receipt p99.9", 5.0), ("to receipt max", 5.0)
    ]  # fmt: skip


def test_nothing_has_no_latency() -> None:
    assert Histogram().at(50) == 0
