"""A query over what is retained in topics, and over archives: each a view of its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from penstock.errors import BadOption
from penstock.spark.jobs import bodies, views
from penstock.spark.jobs.topics import topics_of
from penstock.spark.saying import sentence
from penstock.spark.source import inference
from penstock.spark.source.options import source_options

_CORRUPT: Final = "_corrupt_record"  # what Spark makes of lines that are no JSON

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.spark.jobs.options import Sql


def rows_of(spark: SparkSession, options: Sql, query: str) -> DataFrame:
    """What the query says; BadOption where it is none."""
    for topic in options.topic or topics_of(options):
        views.name_it(_table(spark, options, topic), topic)
    for name, path in options.archive:
        views.name_it(_archive(spark, path), name)
    try:
        return spark.sql(query)
    except PySparkException as error:
        raise BadOption(sentence(error)) from None


def _table(spark: SparkSession, options: Sql, topic: str) -> DataFrame:
    how = {**options.where(), "topic": topic}
    schema = views.schema_of(topic, options.schema) or _guessed(how)
    messages = spark.read.format("nsq").options(**how).load()
    return bodies.beside(messages, bodies.struct(schema)) if schema else views.as_text(messages)


def _guessed(how: dict[str, str]) -> str:
    """The fields that bodies have, where most are JSON objects."""
    found = inference.shape_of_bodies(source_options(how))
    return ", ".join(f"`{name}` {inference.ddl(kind)}" for name, kind in sorted(found.items())) if found else ""


def _archive(spark: SparkSession, path: str) -> DataFrame:
    """Parquet, or JSON lines where there is none; bodies as they show themselves best."""
    try:
        rows = spark.read.parquet(path)
    except (PySparkException, Py4JError) as error:
        lines = _lines(spark, path)
        if lines is None:
            raise BadOption(f"--archive: {path}: {sentence(error)}") from None
        rows = lines
    kind = dict(rows.dtypes).get("body", "")
    if kind.startswith("struct"):
        return views.flat(rows)
    return views.as_text(rows) if kind == "binary" else rows


def _lines(spark: SparkSession, path: str) -> DataFrame | None:
    """JSON lines; None where there are none."""
    try:
        rows = spark.read.json(path)
    except (PySparkException, Py4JError):
        return None
    return None if _CORRUPT in rows.columns else rows
