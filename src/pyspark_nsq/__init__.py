"""Spark imports each top-level package named `pyspark_...`, and takes its DefaultSource for a data source."""

from penstock.spark.data_source import NsqDataSource as DefaultSource

__all__ = ["DefaultSource"]
