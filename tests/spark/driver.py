"""A streaming query as a process of its own, so that a test can kill it: `python -m tests.spark.driver SETTINGS`.

SETTINGS is JSON: master, conf, options (of the source), path and checkpoint (of a parquet sink), and seconds between
batches; without those it reads what is there and ends.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession


def main(settings: str) -> None:
    given = json.loads(settings)
    builder = SparkSession.builder.appName("penstock-driver")
    builder = builder.remote(given["remote"]) if "remote" in given else builder.master(given["master"])
    spark = builder.config(map=given.get("conf", {})).getOrCreate()
    frame = spark.readStream.format("nsq").options(**given["options"]).load()
    if "columns" in given:
        frame = frame.selectExpr(*given["columns"])
    writer = frame.writeStream.format("parquet").option("path", given["path"])
    writer = writer.option("checkpointLocation", given["checkpoint"])
    seconds = given.get("seconds")
    writer = writer.trigger(processingTime=f"{seconds} seconds") if seconds else writer.trigger(availableNow=True)
    query = writer.start()
    print("started", flush=True)
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
