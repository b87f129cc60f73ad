"""An archive back to topics, each message once: as fast as it goes, at a rate, or as it once came.

Slower ones are published at once, deferred: nsqd keeps them until they are due. When that is follows from the message
alone and from what was counted when the job began, which is kept beside its checkpoint: a job that goes on gives each
message the time that it had.

    --speed=2    due = begin + (timestamp - first timestamp) / 2
    --rate=100   due = begin + (messages of the seconds before + some place among those of its second) / 100

With a rate the order is kept from second to second; within one it is that of a hash of the message's id, since messages
of one MPUB have one time.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, LongType, StructType

from penstock.errors import BadOption
from penstock.spark.jobs.job import Job
from penstock.spark.jobs.watching import Watch
from penstock.spark.saying import sentence
from penstock.spark.source.bounds import moment_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from penstock.spark.jobs.options import Replay

LEAD: Final = 2.0  # seconds until the first message is due: what is published by then keeps its place
_SECOND: Final = "_second"
_LINES: Final = StructType().add(_SECOND, LongType()).add("_before", DoubleType()).add("_count", DoubleType())


def start(spark: SparkSession, job: Job[Replay]) -> list[Watch]:
    options = job.options
    still = _chosen(_archive(spark, options), options)
    reading = spark.readStream.format(options.format).schema(_archive(spark, options).schema)
    rows = _chosen(reading.load(options.source), options)
    if options.rate or options.speed:
        rows = _paced(spark, job, still, rows)
    columns = [F.lit(options.topic).alias("topic") if options.topic else F.col("topic"), _body(rows)]
    wanted = rows.select(*columns, *(["defer"] if "defer" in rows.columns else []))
    return [Watch(job.stream(wanted).format("nsq").options(**options.where()).start())]


def _archive(spark: SparkSession, options: Replay) -> DataFrame:
    try:
        return spark.read.format(options.format).load(options.source)
    except AnalysisException as error:
        raise BadOption(f"--from: {options.source}: {sentence(error)}") from None


def _chosen(rows: DataFrame, options: Replay) -> DataFrame:
    if missing := {"topic", "id", "timestamp", "body"} - set(rows.columns):
        raise BadOption(f"--from: {options.source} is no archive of messages: it has no column {min(missing)}")
    rows = rows.withColumn("timestamp", F.col("timestamp").cast("timestamp"))
    for text, name, compare in ((options.since, "since", "ge"), (options.until, "until", "lt")):
        if text:
            moment = F.timestamp_micros(F.lit((moment_of(f"--{name}", text).time or 0) // 1000))
            rows = rows.where(F.col("timestamp") >= moment if compare == "ge" else F.col("timestamp") < moment)
    try:
        return rows.where(options.where_sql) if options.where_sql else rows
    except AnalysisException as error:
        raise BadOption(f"--where: {sentence(error)}") from None


def _body(rows: DataFrame) -> Column:
    """As it was; what an archive has parsed is JSON again."""
    kind = dict(rows.dtypes)["body"]
    return F.to_json("body").alias("body") if kind.startswith("struct") else F.col("body")


# --- when they are due


def _paced(spark: SparkSession, job: Job[Replay], still: DataFrame, rows: DataFrame) -> DataFrame:
    plan = _plan(job, still)
    micros = F.unix_micros("timestamp")
    if job.options.speed:
        after = (micros - F.lit(plan["first"])) / F.lit(1e6 * job.options.speed)
    else:
        lines = F.broadcast(spark.createDataFrame([tuple(line) for line in plan["lines"]], _LINES))
        rows = rows.withColumn(_SECOND, F.floor(micros / 1_000_000)).join(lines, _SECOND, "left")
        part = F.coalesce("_count", F.lit(0.0)) * F.pmod(F.xxhash64("id"), F.lit(1 << 20)) / F.lit(float(1 << 20))
        after = (F.coalesce("_before", F.lit(float(plan["count"]))) + part) / F.lit(job.options.rate)
    due = F.timestamp_micros(F.lit(plan["begin"]) + (after * 1e6).cast("long"))
    return rows.withColumn("defer", due)


def _plan(job: Job[Replay], still: DataFrame) -> dict[str, Any]:
    """What the job began with; found out at its first start."""
    if "://" in job.checkpoint:
        raise BadOption("--checkpoint: with --rate or --speed it has to be a folder of this machine")
    path = Path(job.checkpoint) / "pace.json"
    if path.exists():
        found: dict[str, Any] = json.loads(path.read_text())
        return found
    seconds = still.groupBy(F.floor(F.unix_micros("timestamp") / 1_000_000).alias(_SECOND)).count()
    counts = [(row[0], row[1]) for row in seconds.orderBy(_SECOND).collect()]
    lines, before = [], 0
    for second, count in counts:
        lines.append([second, float(before), float(count)])
        before += count
    first = counts[0][0] * 1_000_000 if counts else 0
    found = {"begin": int((time.time() + LEAD) * 1e6), "first": first, "count": before, "lines": lines}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found))
    return found
