"""Which columns of a query are published, and as what: read from its schema, before any row comes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.errors import BadOption

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from penstock.spark.sink.options import SinkOptions

_BODIES: Final = ("binary", "string")
_WHOLE: Final = ("tinyint", "smallint", "int", "bigint")
_OWN: Final = ("body", "topic", "defer")


@dataclass(frozen=True, slots=True)
class Layout:
    """Names of columns; empty where there is none."""

    body: str
    topic: str  # where it says what each row is published to
    defer: str
    at_time: bool  # `defer` is when a row is due; else ms from now on
    key: str
    json: tuple[str, ...] = ()  # columns that make the body


def layout_of(schema: StructType, options: SinkOptions) -> Layout:
    """BadOption where these columns cannot be published so."""
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    as_json = options.body_as == "json"
    topic = "" if options.topic or "topic" not in types else "topic"
    if not options.topic and not topic:
        raise BadOption("option topic: it must say what is published to, or a column `topic` must")
    _check(types, "topic", ("string",), needed=bool(topic))
    _check(types, "defer", (*_WHOLE, "timestamp"), needed="defer" in types)
    if options.key_column and options.key_column not in types:
        raise BadOption(f"option keyColumn: there is no column {options.key_column}, there are {', '.join(types)}")
    others = tuple(name for name in types if name not in ("topic", "defer"))
    if as_json and not others:
        raise BadOption("option bodyAs: there is no column that json could be made of")
    if not as_json:
        _check_body(types, options)
    return Layout(
        body="" if as_json else "body",
        topic=topic,
        defer="defer" if "defer" in types else "",
        at_time=types.get("defer") == "timestamp",
        key=options.key_column,
        json=others if as_json else (),
    )


def _check_body(types: dict[str, str], options: SinkOptions) -> None:
    if "body" not in types:
        raise BadOption(f"a column `body` is published, and there are {', '.join(types)}: rename one, or bodyAs=json")
    _check(types, "body", _BODIES, needed=True)
    unused = [name for name in types if name not in (*_OWN, options.key_column)]
    if unused:
        raise BadOption(f"columns {', '.join(unused)} would not be published: drop them, or bodyAs=json")


def _check(types: dict[str, str], column: str, allowed: tuple[str, ...], *, needed: bool) -> None:
    if needed and types[column] not in allowed:
        raise BadOption(f"column {column} is {types[column]}, and has to be {' or '.join(allowed)}")
