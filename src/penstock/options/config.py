"""The config file: TOML, with NSQ's keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.errors import BadOption
from penstock.options.flags import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.options.table import Option


def read_config(path: str, rows: Mapping[str, Option]) -> tuple[dict[str, Any], list[str]]:
    """The value of each key that is known, by key; and a note for each that is not."""
    values: dict[str, Any] = {}
    notes = []
    for key, value in document(path).items():
        if key not in rows:  # NSQ takes no notice of it: a file for a later version works with an earlier one
            notes.append(f"config file {path}: {key} is not known and has no effect{did_you_mean(key, rows)}")
            continue
        try:
            values[key] = rows[key].kind.take(value)
        except ValueError as error:
            raise BadOption(f"config file {path}: {key}: {error}") from None
    return values, notes


def document(path: str) -> dict[str, Any]:
    import tomllib

    try:
        with open(path, encoding="utf-8-sig") as file:
            return tomllib.loads(file.read())
    except OSError as error:
        raise BadOption(f"config file {path}: {error.strerror or error}") from None
    except ValueError as error:  # no TOML, or no UTF-8
        raise BadOption(f"config file {path}: {error}") from None
