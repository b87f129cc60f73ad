"""Rows as JSON, as Spark's `to_json` has them."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from penstock.spark.sink.json_rows import json_rows


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        pytest.param(7, pa.int64(), 7, id="number"),
        pytest.param("ä", pa.string(), "ä", id="text"),
        pytest.param(True, pa.bool_(), True, id="bool"),
        pytest.param(b"\x00\xff", pa.binary(), "AP8=", id="bytes"),
        pytest.param(Decimal("1.50"), pa.decimal128(10, 2), 1.5, id="decimal"),
        pytest.param(Decimal("3.00"), pa.decimal128(10, 2), 3, id="whole-decimal"),
        pytest.param(date(2026, 1, 31), pa.date32(), "2026-01-31", id="date"),
        pytest.param(
            datetime(2026, 1, 31, 12, tzinfo=UTC), pa.timestamp("us", "UTC"), "2026-01-31T12:00:00.000Z", id="time"
        ),
        pytest.param([1, None], pa.list_(pa.int32()), [1, None], id="list"),
        pytest.param({"a": 1, "b": None}, pa.struct([("a", pa.int32()), ("b", pa.int32())]), {"a": 1}, id="struct"),
        pytest.param([("k", 1)], pa.map_(pa.string(), pa.int32()), {"k": 1}, id="map"),
    ],
)
def test_values_are_as_in_spark(value: Any, kind: pa.DataType, expected: object) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([value], kind), pa.array([None], pa.int32())], names=["x", "none"])
    assert [json.loads(row) for row in json_rows(batch).to_pylist()] == [{"x": expected}]
