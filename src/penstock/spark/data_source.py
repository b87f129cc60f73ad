"""What Spark finds as `format("nsq")`: says who reads and who writes, and imports them when they are asked for."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource


class NsqDataSource(DataSource):
    """Made anew, from the options alone, by each process that Spark asks something of it."""

    @classmethod
    def name(cls) -> str:
        return "nsq"
