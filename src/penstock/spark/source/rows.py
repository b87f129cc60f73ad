"""The source's rows as Spark types: what `load()` shows, what a user's own schema may say, and the Arrow of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.types import (
    BinaryType,
    DataType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from penstock.errors import BadOption
from penstock.spark.source.options import source_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.spark.source.columns import Columns
    from penstock.spark.source.options import SourceOptions

TYPES: Final[Mapping[str, DataType]] = {
    "topic": StringType(),
    "node": StringType(),
    "offset": LongType(),
    "id": StringType(),
    "timestamp": TimestampType(),
}


def schema(given: Mapping[str, str]) -> str:
    """What `load()` shows, as DDL."""
    options = source_options(given)
    return ", ".join(f"{name} {_ddl(name, options)}" for name in options.columns)


def _ddl(name: str, options: SourceOptions) -> str:
    if name != "body":
        return TYPES[name].simpleString()
    if options.body_as != "json":
        return options.body_as
    if options.schema:
        return f"STRUCT<{options.schema}>"
    from penstock.spark.source.inference import inferred

    return inferred(options)


def checked(options: SourceOptions, asked: StructType) -> StructType:
    """The schema that Spark asks for, if these are our columns: a user may have said it himself, by `.schema()`."""
    for field in asked.fields:
        known = _type(field.name, field.dataType, options)
        if known is None or known != field.dataType:
            columns = ", ".join([*TYPES, "body"])
            expected = f"it is {known.simpleString()}" if known else f"there are {columns}"
            raise BadOption(
                f"the schema has a column {field.name} {field.dataType.simpleString()}: {expected}; without schema() "
                "the source says its own"
            )
    return asked


def _type(name: str, asked: DataType, options: SourceOptions) -> DataType | None:
    if name != "body":
        return TYPES.get(name)
    if options.body_as == "json":
        return asked if isinstance(asked, StructType) else StructType()
    return StringType() if options.body_as == "string" else BinaryType()


def columns_of(schema: StructType) -> Columns:
    """How records become Arrow batches of this schema."""
    from pyspark.sql.pandas.types import to_arrow_schema

    from penstock.spark.source.columns import Columns
    from penstock.spark.source.json_bodies import parser

    arrow = to_arrow_schema(schema, timezone="UTC")
    is_json = "body" in schema.names and isinstance(schema["body"].dataType, StructType)
    return Columns(arrow, parser(arrow.field("body").type) if is_json else None)
