"""Ask SQL of what topics retain, and of archives: each is a view of its name."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from penstock.cli.jobs import arguments as args
from penstock.cli.jobs.running import DONE, WRONG, with_spark
from penstock.cli.log.showing import aligned
from penstock.errors import BadOption
from penstock.spark.jobs.options import Sql

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import DataFrame, SparkSession

FORMATS: Final = ("table", "csv", "json", "parquet")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", help="as: SELECT count(*) FROM events")
    args.add_table(parser, Sql)
    parser.add_argument("--format", choices=FORMATS, default="table", help="of the rows (%(default)s)")
    parser.add_argument("--to", metavar="PATH", help="a folder to write them to, instead of printing them")
    args.add_session_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    try:
        options = args.options(Sql, arguments)
        conf = args.settings(arguments.conf)
        if arguments.format == "parquet" and not arguments.to:
            raise BadOption("--format=parquet: it needs --to")
    except BadOption as error:
        print(f"penstock sql: {error}", file=sys.stderr)
        return WRONG

    def work(spark: SparkSession) -> int:
        from penstock.spark.jobs.sql import rows_of

        rows = rows_of(spark, options, arguments.query)
        if arguments.to:
            form = "csv" if arguments.format == "table" else arguments.format
            rows.write.mode("errorifexists").option("header", "true").format(form).save(arguments.to)
        else:
            _print(rows, arguments.format, options.limit)
        return DONE

    return with_spark("penstock sql", arguments.master, conf, work)


def _print(rows: DataFrame, form: str, limit: int) -> None:
    if form == "json":
        for text in rows.toJSON().toLocalIterator():
            print(text)
    elif form == "csv":
        import csv

        writer = csv.writer(sys.stdout)
        writer.writerow(rows.columns)
        writer.writerows(list(row) for row in rows.toLocalIterator())
    else:
        _table(rows, limit)


def _table(rows: DataFrame, limit: int) -> None:
    found = (rows.limit(limit + 1) if limit else rows).collect()
    shown = found[:limit] if limit else found
    numbers = [number for number, kind in enumerate(rows.dtypes) if kind[1] in ("int", "bigint", "double", "float")]
    for line in aligned([rows.columns, *([_text(value) for value in row] for row in shown)], right=numbers):
        print(line)
    if len(found) > len(shown):
        print(f"... there are more than {limit:,} rows (--limit)", file=sys.stderr)


def _text(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "backslashreplace")
    return str(value)
