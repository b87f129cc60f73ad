"""What Spark finds as `format("nsq")`: says who reads and who writes, and imports them when they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceArrowWriter,
        DataSourceReader,
        DataSourceStreamArrowWriter,
        DataSourceStreamReader,
    )
    from pyspark.sql.types import StructType


class NsqDataSource(DataSource):
    """Made anew, from the options alone, by each process that Spark asks something of it."""

    @classmethod
    def name(cls) -> str:
        return "nsq"

    # --- the source

    def schema(self) -> str:
        from penstock.spark.source import rows

        return rows.schema(self.options)

    def reader(self, schema: StructType) -> DataSourceReader:
        from penstock.spark.source import batch_reader

        return batch_reader.reader(self.options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from penstock.spark.source import stream_reader

        return stream_reader.reader(self.options, schema)

    # --- the sink

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        from penstock.spark.sink import writer

        return writer.writer(self.options, schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        from penstock.spark.sink import writer

        return writer.stream_writer(self.options, schema)
