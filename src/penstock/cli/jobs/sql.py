"""Ask SQL of what topics retain, and of archives: each is a view of its name."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from penstock.cli.jobs import arguments as args
from penstock.cli.jobs.running import DONE, reach, refused, with_spark
from penstock.cli.jobs.showing import passing
from penstock.cli.log.showing import aligned
from penstock.errors import BadOption, SparkError
from penstock.spark.jobs.options import Sql

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from pyspark import RDD
    from pyspark.sql import Column, DataFrame, SparkSession

FORMATS: Final = ("table", "csv", "json", "parquet")
NUMBERS: Final = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
NESTED: Final = ("struct", "array", "map")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", help="as: SELECT count(*) FROM events")
    args.add_table(parser, Sql)
    parser.add_argument("--format", choices=FORMATS, default="table", help="of the rows (%(default)s)")
    parser.add_argument(
        "--to", metavar="PATH", help="a folder to write them to, instead of printing them; as parquet by default"
    )
    parser.add_argument("--config", metavar="FILE", help="TOML: the options from --lookupd to --limit")
    args.add_session_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    try:
        options = args.only(Sql, arguments)
        conf = args.settings(arguments.conf)
        if arguments.format == "parquet" and not arguments.to:
            raise BadOption("--format=parquet: it needs --to=FOLDER")
        reach(options)
    except (BadOption, SparkError) as error:
        return refused("penstock sql", error)

    def work(spark: SparkSession) -> int:
        from penstock.spark.jobs.sql import rows_of

        passing("asking ...")
        rows = rows_of(spark, options, arguments.query)
        if arguments.to:
            _write(rows, arguments.to, "parquet" if arguments.format == "table" else arguments.format)
        else:
            _print(rows, arguments.format, options.limit)
        return DONE

    return with_spark("penstock sql", arguments.master, conf, work)


def _write(rows: DataFrame, path: str, form: str) -> None:
    from pyspark.errors import AnalysisException

    try:
        rows.write.mode("errorifexists").option("header", "true").format(form).save(path)
    except AnalysisException as error:
        if error.getCondition() != "PATH_ALREADY_EXISTS":
            raise
        raise BadOption(f"--to: {path} is there already") from None
    passing("")
    print(f"written to {path} as {form}")


def _print(rows: DataFrame, form: str, limit: int) -> None:
    if form == "json":
        for text in _one_by_one(rows.toJSON()):
            print(text)
    elif form == "csv":
        import csv

        writer = csv.writer(sys.stdout, lineterminator="\n")
        found = _one_by_one(_readable(rows))
        first = next(found, None)
        writer.writerow(rows.columns)
        writer.writerows([] if first is None else [first])
        writer.writerows(found)
    else:
        _table(rows, limit)


def _one_by_one(rows: DataFrame | RDD[str]) -> Iterator[Any]:
    """As they come, so that any number of them may; what was said meanwhile is gone before the first."""
    for row in rows.toLocalIterator():
        passing("")
        yield row


def _table(rows: DataFrame, limit: int) -> None:
    readable = _readable(rows)
    found = (readable.limit(limit + 1) if limit else readable).collect()
    shown = found[:limit] if limit else found
    numbers = [number for number, kind in enumerate(rows.dtypes) if kind[1].startswith(NUMBERS)]
    passing("")
    for line in aligned([rows.columns, *([_cell(value) for value in row] for row in shown)], right=numbers):
        print(line)
    if len(found) > len(shown):
        print(f"... there are more than {limit:,} rows (--limit)", file=sys.stderr)


def _readable(rows: DataFrame) -> DataFrame:
    """Numbers as they are, nested values as JSON, all else as SQL writes it: times in UTC, whatever the machine's."""
    from pyspark.sql import functions as F

    def text(name: str, kind: str) -> Column:
        if kind.startswith(NUMBERS):
            return F.col(name)
        return F.to_json(name) if kind.startswith(NESTED) else F.col(name).cast("string")

    kinds = [kind for _, kind in rows.dtypes]
    names = [f"c{number}" for number in range(len(kinds))]  # two columns may have one name
    return rows.toDF(*names).select(*(text(name, kind).alias(name) for name, kind in zip(names, kinds, strict=True)))


def _cell(value: Any) -> str:
    """On one line, whatever is in it."""
    if value is None:
        return "NULL"
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in str(value))
