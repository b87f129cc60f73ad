"""`register`: for where Spark does not find `format("nsq")` by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make `format("nsq")` known to this session.

    Spark finds it without this through the package `pyspark_nsq`, unless another package of the name `pyspark_...`
    cannot be imported: then Spark looks no further, and says only DATA_SOURCE_NOT_FOUND.
    """
    from penstock.spark.data_source import NsqDataSource

    spark.dataSource.register(NsqDataSource)
