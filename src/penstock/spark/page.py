"""The page of docs/ that lists the options of format("nsq")."""

from __future__ import annotations

from penstock.spark.options import table_rows
from penstock.spark.sink.options import SinkOptions
from penstock.spark.source.options import SourceOptions


def markdown() -> str:
    return "\n".join(
        [
            '# The options of format("nsq")',
            "",
            "Made from the code by `make docs`. Names are taken in any case. One that is unknown or contradicts others",
            "is refused by its name before any node is asked. How they are used: [spark.md](spark.md).",
            "",
            "## Reading",
            *table_rows(SourceOptions),
            "",
            "## Writing",
            *table_rows(SinkOptions),
            "",
        ]
    )
