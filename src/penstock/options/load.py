"""From the command line to a program's options: flag over config file over default."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from penstock import NSQ_VERSION, __version__
from penstock.errors import BadOption
from penstock.options.config import read_config
from penstock.options.flags import read_flags
from penstock.options.kinds import KINDS, TEXT
from penstock.options.table import Option, options_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

T = TypeVar("T")

BOOL: Final = KINDS["bool"]
ABOUT: Final = (  # flags of every program, which no config file holds
    Option(
        field="", flag="config", key="", kind=TEXT, default="", help="the path of a TOML file with options in it",
        heading="Program",
    ),
    Option(field="", flag="help", key="", kind=BOOL, default=False, help="show this, and leave"),
    Option(field="", flag="version", key="", kind=BOOL, default=False, help="show the version, and leave"),
)  # fmt: skip


class Program(NamedTuple, Generic[T]):
    """A daemon: its name, what it does in a sentence, and its table of options."""

    name: str
    summary: str
    table: type[T]


class Setting(NamedTuple):
    """An option that somebody set, the value, and where it stands."""

    option: Option
    value: Any
    origin: str


def load(program: Program[T], argv: Sequence[str]) -> tuple[T, list[str]]:
    """The options, and notes that the log should begin with.

    BadFlag for a command line that cannot be read, else BadOption. `--help` and `--version` print and exit with 0.
    """
    rows = options_of(program.table)
    flags = read_flags({row.flag: row.kind for row in (*rows, *ABOUT)}, argv)
    if flags.get("help"):
        from penstock.options.page import help_text

        _leave(help_text(program))
    if flags.get("version"):
        _leave(version_line(program.name))
    settings, notes = _settings(rows, flags)
    for setting in settings:
        notes.extend(_judge(setting))
    return program.table(**{setting.option.field: setting.value for setting in settings}), notes


def version_line(name: str) -> str:
    """Begins as NSQ's, which scripts read; our own version stands behind it."""
    return f"{name} v{NSQ_VERSION} (penstock v{__version__}, Python {sys.version.split()[0]})"


def _settings(rows: Sequence[Option], flags: dict[str, Any]) -> tuple[list[Setting], list[str]]:
    path = flags.get("config", "")
    file, notes = read_config(path, {row.key: row for row in rows}) if path else ({}, [])
    settings = []
    for row in rows:
        if row.flag in flags:
            settings.append(Setting(row, flags[row.flag], f"--{row.flag}"))
        elif row.key in file:
            settings.append(Setting(row, file[row.key], f"config file {path}: {row.key}"))
    return settings, notes


def _judge(setting: Setting) -> Iterator[str]:
    """Notes about the value; BadOption when it is out of bounds, or asks for what is not there."""
    row, value, origin = setting
    try:
        row.kind.check(value, row.least, row.most)
    except ValueError as error:
        raise BadOption(f"{origin}: {error}") from None
    if row.needs and value:
        raise BadOption(f"{origin}: this version has no {row.needs} yet")
    if row.deprecated:
        yield f"{origin} is deprecated and has no effect; use {row.deprecated}"


def _leave(text: str) -> None:
    print(text)
    sys.exit(0)
