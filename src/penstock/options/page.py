"""What a person reads about a program's options: `--help`, and the page in docs/."""

from __future__ import annotations

import textwrap
from dataclasses import MISSING
from typing import TYPE_CHECKING, Any, Final

from penstock.options.kinds import Words
from penstock.options.load import ABOUT, Program
from penstock.options.table import Option, options_of

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDTH: Final = 100
COLUMN: Final = 38
FORMS: Final = "--flag=value, --flag value, and the same with one hyphen; a bool also without a value"


def help_text(program: Program[Any]) -> str:
    """All flags in their groups, as `--help` shows them."""
    lines = [f"{program.name}: {program.summary}", "", f"Usage: {program.name} [FLAG...]", f"  {FORMS}"]
    for row in (*options_of(program.table), *ABOUT):
        if row.heading:
            lines += ["", f"{row.heading}:"]
        lines += _entry(row)
    return "\n".join(lines)


def markdown(program: Program[Any]) -> str:
    """The page in docs/."""
    lines = [
        f"# Flags of {program.name}",
        "",
        f"<!-- Made from the table in src/penstock/{program.name}/options.py by `make docs`. -->",
        "",
        f"{program.name} {program.summary}",
        "",
        f"Forms: {FORMS}. In the TOML file that",
        "`--config` names, an option has its key; a flag counts more than the file. A duration is written as in Go",
        "(`1m30s`, `500ms`); in the file a bare number counts milliseconds. What is marked **Penstock** is not in NSQ.",
    ]
    for row in (*options_of(program.table), *ABOUT):
        if row.heading:
            lines += ["", f"## {row.heading}", "", "| flag | key | type | default | |", "|---|---|---|---|---|"]
        lines.append(_table_row(row))
    return "\n".join(lines) + "\n"


def _entry(row: Option) -> list[str]:
    flag = f"  --{row.flag}[={row.kind.name}]" if row.kind.bare else f"  --{row.flag}={row.kind.name}"
    default = _default(row)
    text = _sentence(row) + (f" (default {default})" if default else "")
    lines = textwrap.wrap(text, WIDTH - COLUMN, break_long_words=False, break_on_hyphens=False)
    if len(flag) < COLUMN:
        flag, lines = f"{flag:{COLUMN}}{lines[0]}", lines[1:]
    return [flag, *(" " * COLUMN + line for line in lines)]


def _table_row(row: Option) -> str:
    default = _default(row)
    cells = (
        f"`--{row.flag}`",
        f"`{row.key}`" if row.key else "",
        row.kind.name,
        f"`{default}`" if default and not row.shown else default,
        ("**Penstock** " if row.ours else "") + _sentence(row).removeprefix("[Penstock] "),
    )
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def _sentence(row: Option) -> str:
    return "; ".join(_clauses(row))


def _clauses(row: Option) -> Iterator[str]:
    yield f"[Penstock] {row.help}" if row.ours else row.help
    if isinstance(row.kind, Words):
        yield "one of " + ", ".join(row.kind.choices())
    if row.kind.many:
        yield "may be given many times"
    if row.needs:
        yield f"refused: there is no {row.needs} yet"
    if row.deprecated:
        yield f"deprecated, without effect: use {row.deprecated}"


def _default(row: Option) -> str:
    if row.shown or row.default is MISSING or row.default is False:
        return row.shown
    return str(row.kind.show(row.default))
