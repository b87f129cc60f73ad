"""JSON bodies as a struct, as Spark's `from_json` gives it: what does not fit its type is null, the rest stands.

Each message is read by itself, so that what a row holds depends on no other row.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any

import pyarrow as pa

Convert = Callable[[Any], Any]


def parser(kind: pa.StructType) -> Callable[[pa.Array], pa.Array]:
    """What makes of bodies an array of such structs."""
    convert = converter(kind)

    def parse(bodies: pa.Array) -> pa.Array:
        return pa.array([convert(_value(body)) for body in bodies.to_pylist()], kind)

    return parse


def _value(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def converter(kind: pa.DataType) -> Convert:
    """What makes of a JSON value one of the Arrow type, or None."""
    if pa.types.is_struct(kind):
        return partial(_struct, {field.name: converter(field.type) for field in kind})
    if pa.types.is_list(kind):
        return partial(_list, converter(kind.value_type))
    if pa.types.is_map(kind):
        return partial(_map, converter(kind.item_type))
    if pa.types.is_integer(kind):
        return partial(_integer, kind.bit_width)
    if pa.types.is_decimal(kind):
        return partial(_decimal, kind)
    for is_kind, convert in _SIMPLE:
        if is_kind(kind):
            return convert
    return lambda _: None


def _struct(fields: dict[str, Convert], value: Any) -> Any:
    if not isinstance(value, dict):
        return None
    return {name: convert(value.get(name)) for name, convert in fields.items()}


def _list(item: Convert, value: Any) -> Any:
    return [item(each) for each in value] if isinstance(value, list) else None


def _map(item: Convert, value: Any) -> Any:
    return [(key, item(each)) for key, each in value.items()] if isinstance(value, dict) else None


def _integer(bits: int, value: Any) -> Any:
    fits = isinstance(value, int) and not isinstance(value, bool) and -(1 << bits - 1) <= value < 1 << bits - 1
    return value if fits else None


def _float(value: Any) -> Any:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _decimal(kind: pa.Decimal128Type, value: Any) -> Any:
    if not isinstance(value, (int, float, str)) or isinstance(value, bool):
        return None
    try:
        found = Decimal(str(value)).quantize(Decimal(1).scaleb(-kind.scale))
    except InvalidOperation:
        return None
    return found if len(found.as_tuple().digits) <= kind.precision else None


def _bool(value: Any) -> Any:
    return value if isinstance(value, bool) else None


def _text(value: Any) -> Any:
    """What is no text is its JSON, as in Spark."""
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "replace").decode()  # half of a surrogate pair is no text of Arrow's


def _bytes(value: Any) -> Any:
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else None
    except ValueError:
        return None


def _timestamp(value: Any) -> Any:
    """ISO 8601; without a zone it is taken for UTC."""
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return found if found is None or found.tzinfo else found.replace(tzinfo=UTC)


def _date(value: Any) -> Any:
    try:
        return date.fromisoformat(value[:10]) if isinstance(value, str) else None
    except ValueError:
        return None


_SIMPLE: list[tuple[Callable[[pa.DataType], bool], Convert]] = [
    (pa.types.is_string, _text),
    (pa.types.is_floating, _float),
    (pa.types.is_boolean, _bool),
    (pa.types.is_timestamp, _timestamp),
    (pa.types.is_date, _date),
    (pa.types.is_binary, _bytes),
]
