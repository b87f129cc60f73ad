"""JSON bodies become structs, as Spark's from_json would read them; and their struct is found out."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from penstock.spark.source.inference import ddl, merged, shape
from penstock.spark.source.json_bodies import parser


def parsed(kind: pa.DataType, *values: Any) -> list[Any]:
    bodies = pa.array([json.dumps({"a": value}).encode() for value in values], pa.binary())
    return [row["a"] for row in parser(pa.struct([("a", kind)]))(bodies).to_pylist()]


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        pytest.param(
            pa.int32(), [1, 2**31, -(2**31), 1.0, "1", True, None], [1, None, -(2**31)] + [None] * 4, id="int"
        ),
        pytest.param(pa.int64(), [2**63 - 1, 2**63], [2**63 - 1, None], id="bigint"),
        pytest.param(pa.float64(), [1, 1.5, "1", True, 10**400], [1.0, 1.5, None, None, None], id="double"),
        pytest.param(pa.bool_(), [True, 1, "true"], [True, None, None], id="boolean"),
        pytest.param(pa.string(), ["ü", 5, {"b": [1]}, None], ["ü", "5", '{"b":[1]}', None], id="string"),
        pytest.param(pa.string(), ["\ud800"], ["?"], id="half-a-surrogate-pair"),
        pytest.param(pa.binary(), ["aGk=", "?", 5], [b"hi", None, None], id="binary"),
        pytest.param(pa.decimal128(4, 2), [1.25, "1.5", 999], [Decimal("1.25"), Decimal("1.50"), None], id="decimal"),
        pytest.param(pa.date32(), ["2026-01-31", "soon"], [date(2026, 1, 31), None], id="date"),
        pytest.param(pa.list_(pa.int64()), [[1, "x"], 5], [[1, None], None], id="array"),
        pytest.param(pa.map_(pa.string(), pa.int64()), [{"k": 1}, []], [[("k", 1)], None], id="map"),
        pytest.param(pa.struct([("b", pa.int64())]), [{"b": 1, "c": 2}, 5], [{"b": 1}, None], id="struct"),
        pytest.param(
            pa.timestamp("us", tz="UTC"),
            ["2026-01-31T12:00:00+01:00", "2026-01-31 11:00:00", "soon", 5],
            [datetime(2026, 1, 31, 11, tzinfo=UTC)] * 2 + [None, None],
            id="timestamp",
        ),
    ],
)
def test_what_fits_its_type_is_taken_and_the_rest_is_null(kind: pa.DataType, values: list[Any], expected: Any) -> None:
    assert parsed(kind, *values) == expected


@pytest.mark.parametrize("body", [b"", b"{", b"5", b"[1]", b"\xff", b"[" * 100_000])
def test_what_is_no_json_object_is_null(body: bytes) -> None:
    assert parser(pa.struct([("a", pa.int64())]))(pa.array([body, b'{"a":1}'])).to_pylist() == [None, {"a": 1}]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([{"a": 1}, {"a": 2.5, "b": True}], "STRUCT<`a`: DOUBLE, `b`: BOOLEAN>"),
        ([{"a": 1}, {"a": "x"}], "STRUCT<`a`: STRING>"),
        ([{"a": [1, 2.5]}, {"a": []}], "STRUCT<`a`: ARRAY<DOUBLE>>"),
        ([{"a": {"b": 1}}, {"a": {"c": None}}], "STRUCT<`a`: STRUCT<`b`: BIGINT, `c`: STRING>>"),
        ([{"a": 2**70}], "STRUCT<`a`: DOUBLE>"),
        ([{"a": {}}, {"b`c": "x"}], "STRUCT<`a`: STRING, `b``c`: STRING>"),
        ([{"a": [1]}, {"a": 1}], "STRUCT<`a`: STRING>"),
    ],
)
def test_a_struct_is_found_that_all_fit(values: list[Any], expected: str) -> None:
    assert ddl(merged(map(shape, values))) == expected
