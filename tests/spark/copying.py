"""A query that copies a topic, as a process of its own, so that a test can kill it: `python -m tests.spark.copying`.

Its arguments: the cores, the nsqd, the checkpoint, and seconds between batches; 0 reads what is there and ends.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession


def main(cores: str, nsqd: str, checkpoint: str, seconds: str) -> None:
    builder = SparkSession.builder.master(f"local[{cores},4]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
    reading = spark.readStream.format("nsq").option("nsqd", nsqd).option("topic", "in").option("columns", "body")
    reading = reading.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", "2000")
    frame = reading.option("maxRecordsPerPartition", "700").load()
    writing = frame.writeStream.format("nsq").option("nsqd", nsqd).option("topic", "out").option("chunkBytes", "500")
    writing = writing.option("checkpointLocation", checkpoint)
    writing = (
        writing.trigger(processingTime=f"{seconds} seconds") if seconds != "0" else writing.trigger(availableNow=True)
    )
    query = writing.start()
    print("started", flush=True)
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
