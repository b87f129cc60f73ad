"""A job's options from flags and from a TOML file, by the job's table; a flag counts more.

nsqd = "127.0.0.1:4151"       for all jobs of the file
[orders]                      a job, by its name
topic = "orders"
to = "/data/archive"
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final, TypeVar

from penstock.errors import BadOption
from penstock.options import Option, options_of
from penstock.options.config import document
from penstock.options.flags import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")

_OF_THE_RUN: Final = frozenset({"checkpoint", "every"})  # of each job, and no option of its table


def add_session_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Spark")
    group.add_argument("--master", default="local[*]", help="where it runs (%(default)s)")
    group.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE", help="a setting of Spark's")


def add_job_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("The job")
    group.add_argument("--name", help="by which it goes on where it was; by default of what it reads and writes")
    group.add_argument("--checkpoint", metavar="DIR", help="where it notes how far it is; by default by its name")
    when = group.add_mutually_exclusive_group()
    when.add_argument("--once", action="store_true", help="take what is there, and end; the default")
    when.add_argument("--every", metavar="TIME", help="go on, and look for more so often, as 30s")
    group.add_argument("--config", metavar="FILE", help="TOML: these options, and a table for each of several jobs")
    group.add_argument("--json", action="store_true", help="a line of JSON for each step")


def add_table(parser: argparse.ArgumentParser, table: type) -> None:
    """A flag for each option of the table."""
    group: Any = parser
    for row in options_of(table):
        if row.heading:
            group = parser.add_argument_group(row.heading)
        default = row.shown or row.kind.show(row.default)
        help_ = f"{row.help} ({default})" if default else row.help
        action = "append" if row.kind.many else "store"
        group.add_argument(
            f"--{row.flag}", dest=row.field, action=action, metavar=row.kind.name.upper(), help=help_.replace("%", "%%")
        )


def settings(conf: list[str]) -> dict[str, str]:
    """Those of `--conf`."""
    found = {}
    for text in conf:
        name, given, value = text.partition("=")
        if not given or not name:
            raise BadOption(f"--conf: {text!r} is not written as NAME=VALUE")
        found[name] = value
    return found


def options(table: type[T], arguments: argparse.Namespace, given: Mapping[str, Any] | None = None, at: str = "") -> T:
    """By the table: from flags, and what a file has `at` some place."""
    values: dict[str, Any] = {}
    for row in options_of(table):
        texts = getattr(arguments, row.field)
        if texts is not None:
            values[row.field] = _of_flag(row, texts)
        elif given is not None and row.key in given:
            values[row.field] = _of_file(row, given[row.key], at)
    return table(**values)


def jobs(table: type[T], arguments: argparse.Namespace) -> dict[str, tuple[T, Mapping[str, Any]]]:
    """The jobs by name, each with what else the file says of it (`checkpoint`, `every`)."""
    if not arguments.config:
        return {arguments.name or "": (options(table, arguments), {})}
    file = document(arguments.config)
    for_all = {key: value for key, value in file.items() if not isinstance(value, dict)}
    tables = {key: value for key, value in file.items() if isinstance(value, dict)}
    found: dict[str, tuple[T, Mapping[str, Any]]] = {}
    for name, own in tables.items() or {arguments.name or "": {}}.items():
        at = f"{arguments.config}: {name or 'top'}"
        merged = {**for_all, **own}
        _known(table, merged, at, _OF_THE_RUN)
        found[name] = (options(table, arguments, merged, at), merged)
    return found


def only(table: type[T], arguments: argparse.Namespace) -> T:
    """The options of a command that is one job and goes through no run; a file may have them too."""
    if not arguments.config:
        return options(table, arguments)
    given = document(arguments.config)
    _known(table, given, arguments.config)
    return options(table, arguments, given, arguments.config)


def _known(table: type, given: Mapping[str, Any], at: str, more: frozenset[str] = frozenset()) -> None:
    known = {row.key for row in options_of(table)} | more
    for key in given:
        if key not in known:
            raise BadOption(f"{at}: {key} is unknown{did_you_mean(key, dict.fromkeys(known))}")


def _of_flag(row: Option, texts: Any) -> Any:
    if not row.kind.many:
        return _value(row, texts, f"--{row.flag}")
    return sum((_value(row, text, f"--{row.flag}") for text in texts), ())


def _of_file(row: Option, value: Any, at: str) -> Any:
    """A list stands for a text with commas, or for a flag that is given several times."""
    where = f"{at}: {row.key}"
    if isinstance(value, list):
        texts = [str(each) for each in value]
        if row.kind.many:
            return sum((_value(row, text, where) for text in texts), ())
        return _value(row, ",".join(texts), where)
    if isinstance(value, bool):
        return _value(row, str(value).lower(), where)
    return _value(row, str(value), where)


def _value(row: Option, text: str, where: str) -> Any:
    try:
        value = row.kind.parse(text)
        row.kind.check(value, row.least, row.most)
    except ValueError as error:
        raise BadOption(f"{where}: {error}") from None
    return value
