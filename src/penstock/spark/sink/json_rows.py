"""Rows as JSON objects, in the manner of Spark's `to_json`: nulls are left out, times are ISO 8601, bytes base64.

For rows that are not too many: Spark's own `to_json(struct(*))`, into a column `body`, is ten times as fast.
"""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa


def json_rows(batch: pa.RecordBatch) -> pa.BinaryArray:
    """One object a row."""
    encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain).encode
    names = batch.schema.names
    rows = zip(*(_values(column) for column in batch.columns), strict=True)
    return pa.array([encode(_object(names, row)).encode() for row in rows], pa.binary())


def _values(column: pa.Array) -> list[Any]:
    if pa.types.is_map(column.type):
        return [None if pairs is None else {str(key): value for key, value in pairs} for pairs in column.to_pylist()]
    return column.to_pylist()  # type: ignore[no-any-return]


def _object(names: list[str], row: tuple[Any, ...]) -> dict[str, Any]:
    return {name: _without_nulls(value) for name, value in zip(names, row, strict=True) if value is not None}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    raise TypeError(f"{type(value).__name__} has no JSON")
