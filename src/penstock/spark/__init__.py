"""NSQ topics as a source and a sink of Spark: `format("nsq")`. Importing this imports nothing of Spark."""

from penstock.spark.registering import register

__all__ = ["register"]
