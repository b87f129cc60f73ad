"""Topics to files, each message once: PATH/topic=T/date=D/hour=H, by the message's own time in UTC.

What does not fit the schema, where there is one, goes to PATH/_bad as it is: a query of its own, which reads the same
messages again, since only so each of both sinks has every message once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from penstock.spark.jobs import bodies
from penstock.spark.jobs.job import Job, read
from penstock.spark.jobs.options import JSON_LINES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.spark.jobs.options import Archive
    from penstock.spark.jobs.watching import Watch

PARTITIONS: Final = ("topic", "date", "hour")
BAD: Final = ":bad"


def start(spark: SparkSession, job: Job[Archive]) -> list[Watch]:
    options = job.options
    messages = read(spark, options.source())
    if not options.schema:
        return [_write(job, messages, options.to)]
    parsed = bodies.parse(messages, bodies.struct(options.schema))
    bad = f"{options.to.rstrip('/')}/_bad"
    return [_write(job, parsed.good, options.to), _write(job, parsed.bad, bad, BAD)]


def _write(job: Job[Archive], messages: DataFrame, path: str, part: str = "") -> Watch:
    rows = messages.withColumn("date", F.to_date("timestamp")).withColumn("hour", F.hour("timestamp"))
    if job.options.format == JSON_LINES and dict(messages.dtypes)["body"] == "binary":
        rows = rows.withColumn("body", F.col("body").cast("string"))  # else it would be base64
    options = job.options
    return job.to_files(rows, path, options.format, PARTITIONS, part, maxRecordsPerFile=options.rows_per_file)
