"""Topics as tables: the message's envelope, and its body's fields where they are known. Knows Spark; no job.

topic, node, offset, id, timestamp, body           as `format("nsq")` has them, the body as text
the fields of the schema                           beside them, where the body is parsed
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from penstock.errors import BadOption
from penstock.spark.jobs import bodies
from penstock.spark.jobs.options import EVERYWHERE
from penstock.spark.saying import sentence

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.spark.jobs.options import Named


def schema_of(topic: str, schemas: Named) -> str:
    found = dict(schemas)
    return found.get(topic, found.get(EVERYWHERE, ""))


def as_text(messages: DataFrame) -> DataFrame:
    return messages.withColumn("body", F.col("body").cast("string"))


def flat(parsed: DataFrame) -> DataFrame:
    """The body's fields as columns; one that is named as a column of the envelope takes its place."""
    fields = parsed.select("body.*").columns
    kept = [name for name in parsed.columns if name != "body" and name not in fields]
    return parsed.select(*kept, "body.*")


def table(messages: DataFrame, schema: str) -> tuple[DataFrame, DataFrame | None]:
    """The rows, and the messages that do not fit the schema, where there is one."""
    if not schema:
        return as_text(messages), None
    good, bad = bodies.parse(messages, bodies.struct(schema))
    return flat(good), bad


def name_it(rows: DataFrame, name: str) -> None:
    """As a view; it is written `a-b` in SQL where the name is no plain word."""
    try:
        rows.createOrReplaceTempView(f"`{name}`")
    except Exception as error:
        raise BadOption(f"--topic: {name!r} cannot be the name of a view: {sentence(error)}") from error
