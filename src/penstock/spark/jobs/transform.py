"""Topics to a topic, or to files, by SQL or by a function of the user's."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.errors import BadOption
from penstock.spark.jobs import views
from penstock.spark.jobs.job import Job, read
from penstock.spark.jobs.watching import Watch
from penstock.spark.saying import sentence

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.spark.jobs.options import Transform


def start(spark: SparkSession, job: Job[Transform]) -> list[Watch]:
    options = job.options
    tables: dict[str, DataFrame] = {}
    unparsable: list[DataFrame] = []
    for topic in options.topic:
        rows, bad = views.table(read(spark, options.source(topic)), views.schema_of(topic, options.schema))
        tables[topic] = _marked(rows, topic, options) if options.watermark else rows
        unparsable += [bad] if bad is not None else []
    result = _by_sql(spark, tables, options.sql) if options.sql else _by_function(tables, options.function)
    queries = [_write(job, result)]
    if unparsable:
        queries.append(_write_unparsable(job, unparsable))
    return queries


def _marked(rows: DataFrame, topic: str, options: Transform) -> DataFrame:
    """So that windows and joins know when nothing more comes for them."""
    if dict(rows.dtypes).get(options.event_time) != "timestamp":
        raise BadOption(f"--event-time: {options.event_time} is no column of {topic} that holds a TIMESTAMP")
    try:
        return rows.withWatermark(options.event_time, options.watermark)
    except PySparkException as error:
        raise BadOption(f"--watermark: {sentence(error)}") from None


def _by_sql(spark: SparkSession, tables: dict[str, DataFrame], sql: str) -> DataFrame:
    for topic, rows in tables.items():
        views.name_it(rows, topic)
    try:
        return spark.sql(sql)
    except PySparkException as error:
        raise BadOption(f"--sql: {sentence(error)}") from None


def _by_function(tables: dict[str, DataFrame], named: str) -> DataFrame:
    module, _, name = named.partition(":")
    sys.path.insert(0, os.getcwd())  # as `python -m` does
    try:
        function = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise BadOption(f"--function: {error}") from None
    result = function(**tables)
    if not isinstance(result, DataFrame):
        raise BadOption(f"--function: {named} returned {type(result).__name__}, not a DataFrame")
    return result


def _write(job: Job[Transform], result: DataFrame) -> Watch:
    options = job.options
    if options.to:
        return job.to_files(result, options.to, options.format)
    how = {**options.where(), "topic": options.to_topic, "bodyAs": "column" if "body" in result.columns else "json"}
    return Watch(job.stream(result).outputMode(options.mode).format("nsq").options(**how).start())


def _write_unparsable(job: Job[Transform], unparsable: list[DataFrame]) -> Watch:
    """To their topic, or counted and left."""
    options = job.options
    every, *others = [each.select("topic", "body") for each in unparsable]
    for each in others:
        every = every.unionAll(each)
    if not options.dead_letter:
        return Watch(job.stream(every, ":unparsable").format("noop").start())
    envelope = F.to_json(F.struct("topic", F.col("body").cast("string").alias("body")))
    writer = job.stream(every.select(envelope.alias("body")), ":unparsable").format("nsq")
    return Watch(writer.options(**options.where(), topic=options.dead_letter).start())
