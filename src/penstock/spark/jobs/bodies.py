"""Bodies parsed as JSON by a schema: those that fit, and those that do not. Knows Spark; no job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from penstock.errors import BadOption
from penstock.spark.saying import sentence

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CORRUPT: Final = "_unparsable"
_PARSED: Final = "_parsed"


class Parsed(NamedTuple):
    good: DataFrame  # with a struct `body`
    bad: DataFrame  # as they were


def struct(text: str) -> StructType:
    """The schema that a person wrote; BadOption where it is none."""
    try:
        found = StructType.fromDDL(text)
    except PySparkException as error:
        example = "`user STRING, amount DOUBLE`"
        raise BadOption(f"--schema: {text!r} is no schema such as {example}: {sentence(error)}") from None
    if not isinstance(found, StructType):
        raise BadOption(f"--schema: {text!r} is no list of columns")
    return found


def parse(messages: DataFrame, schema: StructType) -> Parsed:
    """Messages whose body is a JSON object that fits the schema, and the others."""
    parsed = _with_parsed(messages, schema)
    fits = F.col(_PARSED).isNotNull() & F.col(f"{_PARSED}.{_CORRUPT}").isNull()
    body = F.struct(*(F.col(f"{_PARSED}.`{name}`").alias(name) for name in schema.names))
    good = parsed.where(fits).withColumn("body", body).drop(_PARSED)
    return Parsed(good, parsed.where(~fits).drop(_PARSED))


def beside(messages: DataFrame, schema: StructType) -> DataFrame:
    """The body as text, and its fields as columns: empty where it does not fit."""
    parsed = _with_parsed(messages, schema).withColumn("body", F.col("body").cast("string"))
    kept = [name for name in messages.columns if name not in schema.names]
    return parsed.select(*kept, *(F.col(f"{_PARSED}.`{name}`") for name in schema.names))


def _with_parsed(messages: DataFrame, schema: StructType) -> DataFrame:
    wanted = StructType([*schema.fields]).add(_CORRUPT, StringType())
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    return messages.withColumn(_PARSED, F.from_json(F.col("body").cast("string"), wanted, options))
