"""Filters narrow what a batch reads, never too much."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

pytest.importorskip("pyspark", reason="pyspark (extra `spark`) is not installed")

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from penstock.spark.source.pushdown import Narrowing, narrowing

NOON = datetime(2026, 1, 1, tzinfo=UTC)
NS = 1_767_225_600 * 10**9


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([EqualTo(("topic",), "a")], Narrowing(topics=frozenset("a"))),
        ([In(("topic",), ("a", "b")), EqualTo(("topic",), "b")], Narrowing(topics=frozenset("b"))),
        ([EqualTo(("topic",), "a"), EqualTo(("topic",), "b")], Narrowing(topics=frozenset())),
        ([GreaterThan(("offset",), 5), LessThan(("offset",), 9)], Narrowing(first=5, until=10)),
        ([GreaterThanOrEqual(("offset",), 5), LessThanOrEqual(("offset",), 9)], Narrowing(first=5, until=10)),
        ([EqualTo(("offset",), 5), LessThan(("offset",), 3)], Narrowing(first=5, until=4)),
        ([GreaterThanOrEqual(("timestamp",), NOON)], Narrowing(time=NS)),
        ([LessThanOrEqual(("timestamp",), NOON)], Narrowing()),  # a deferred message is appended later
        ([Not(EqualTo(("offset",), 5)), IsNotNull(("topic",)), StringStartsWith(("topic",), "a")], Narrowing()),
        ([EqualTo(("body",), b"x"), GreaterThan(("offset",), 1.5)], Narrowing()),
    ],
)
def test_what_filters_leave_out(filters: list[Filter], expected: Narrowing) -> None:
    assert narrowing(filters) == expected
