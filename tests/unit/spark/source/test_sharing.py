"""A limit is shared by lag."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.spark.source.sharing import shares

LAGS = st.lists(st.integers(0, 10**12), max_size=20)


@given(st.integers(0, 10**12), LAGS)
def test_all_of_the_limit_is_dealt_and_nobody_gets_more_than_his_lag(limit: int, lags: list[int]) -> None:
    found = shares(limit, lags)
    assert sum(found) == min(limit, sum(lags))
    assert all(0 <= share <= lag for share, lag in zip(found, lags, strict=True))


@given(LAGS, st.integers(0, 100))
def test_who_lags_gets_one_at_least(lags: list[int], more: int) -> None:
    lagging = sum(lag > 0 for lag in lags)
    found = shares(lagging + more, lags)
    assert all(share for share, lag in zip(found, lags, strict=True) if lag)


@given(st.integers(100, 10**9), st.lists(st.integers(1, 10**9), min_size=1, max_size=20))
def test_shares_are_in_proportion(limit: int, lags: list[int]) -> None:
    if sum(lags) > limit:
        for share, lag in zip(shares(limit, lags), lags, strict=True):
            assert abs(share - limit * lag / sum(lags)) <= len(lags) + 1


def test_an_example() -> None:
    assert shares(100, [300, 100, 0]) == [75, 25, 0]
    assert shares(3, [10**9, 1, 1]) == [1, 1, 1]
