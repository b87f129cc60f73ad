"""The options of `format("nsq")`: one table for the source and one for the sink, read as Spark hands them over.

    @dataclass(frozen=True, kw_only=True, slots=True)
    class SourceOptions(ConnectionOptions):
        max_bytes_per_trigger: int = option(0, "how much one batch takes", kind=SIZE)

The name in Spark is the field's in camel case, in any case that the user writes it in. A frozen table is read before
anything is asked of a node, so that what is wrong is told at once.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, TypeVar

from penstock.errors import BadOption
from penstock.options import Kind, Option, option, options_of
from penstock.options.kinds import Bool, Int, Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

T = TypeVar("T", bound="ConnectionOptions")

_UNITS: Final = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE: Final = re.compile(r"([0-9]{1,18})([bkmgt]?)b?")


class YesNo(Bool):
    """As Spark reads its own options: in any case, and only these two words."""

    name = "boolean"

    def parse(self, text: str) -> bool:
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
        raise ValueError(f"{text!r} is neither true nor false")


class Whole(Int):
    name = "number"

    def parse(self, text: str) -> int:
        if text.isascii() and text.isdigit() and len(text) < 19:
            return int(text)
        raise ValueError(f"{text!r} is not a whole number")


class Size(Whole):
    """Bytes, as Spark writes them: `64m`."""

    name = "size"

    def parse(self, text: str) -> int:
        found = _SIZE.fullmatch(text.lower())
        if found is None:
            raise ValueError(f"{text!r} is not a size, such as 500000, 64m or 1g")
        return int(found[1]) * _UNITS[found[2]]

    def show(self, value: int) -> str:
        unit = next((unit for unit in "tgmk" if value and value % _UNITS[unit] == 0), "")
        return f"{value // _UNITS[unit]}{unit}"


class Secret(str):
    """A text that is not shown where options are printed."""

    def __repr__(self) -> str:
        return "'***'"


class Hidden(Text):
    def parse(self, text: str) -> str:
        return Secret(text)


class Names(Kind[tuple[str, ...]]):
    """Several, with commas between them."""

    name = "list"

    def parse(self, text: str) -> tuple[str, ...]:
        return tuple(part.strip() for part in text.split(",") if part.strip())

    def show(self, value: tuple[str, ...]) -> str:
        return ",".join(value)


class Addresses(Names):
    """HTTP addresses, `host:port` or a whole URL without a path; kept as URLs."""

    name = "addresses"

    def parse(self, text: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(_url(part) for part in super().parse(text)))


YES_NO: Final = YesNo()
WHOLE: Final = Whole()
SIZE: Final = Size()
NAMES: Final = Names()
ADDRESSES: Final = Addresses()

_ADDRESS: Final = re.compile(r"(https?://)?([^\s/:@\[\]?#]+|\[[0-9a-fA-F:.]+\]):([0-9]{1,5})/?")


def _url(address: str) -> str:
    found = _ADDRESS.fullmatch(address)
    if found is None or not 0 < int(found[3]) <= 0xFFFF:
        raise ValueError(f"{address!r} is not host:port, http://host:port or https://host:port")
    return f"{found[1] or 'http://'}{found[2]}:{found[3]}"


@dataclass(frozen=True, kw_only=True, slots=True)
class ConnectionOptions:
    """Where the nodes are, and how they are spoken to: the same for the source and the sink."""

    lookupd: tuple[str, ...] = option(
        (), "the HTTP addresses of nsqlookupd, which name the nsqd", kind=ADDRESSES, heading="Where"
    )
    nsqd: tuple[str, ...] = option((), "the HTTP addresses of the nsqd themselves, instead", kind=ADDRESSES)
    token: str = option(
        "",
        "sent to each as `Authorization: Bearer`",
        kind=Hidden(),
        shown="the environment's `PENSTOCK_TOKEN`",
        heading="Security",
    )
    tls_ca_file: str = option(
        "",
        "the certificates that those of `https://` addresses are checked by",
        shown="the environment's `PENSTOCK_TLS_CA_FILE`, or the machine's",
    )
    tls_cert_file: str = option(
        "",
        "the client's own certificate, where the server wants one; its key stands in the same file or in another",
        shown="the environment's `PENSTOCK_TLS_CERT_FILE`",
    )
    tls_key_file: str = option("", "the key of that certificate", shown="the environment's `PENSTOCK_TLS_KEY_FILE`")

    def __post_init__(self) -> None:
        if self.lookupd and self.nsqd:
            raise BadOption("options lookupd and nsqd: only one of them can say where the nodes are")
        if not self.lookupd and not self.nsqd:
            raise BadOption("option lookupd or nsqd: one must say where the nodes are, as nsqd=host:4151")

    def secret(self, name: str) -> str:
        """An option of the group Security, or what this process's environment has instead."""
        return str(getattr(self, name)) or os.environ.get(f"PENSTOCK_{name.upper()}", "")


def name_of(row: Option) -> str:
    """How a user of Spark writes the option."""
    return camel(row.field)


def camel(field: str) -> str:
    first, *rest = field.split("_")
    return first + "".join(word.capitalize() for word in rest)


def read_options(table: type[T], given: Mapping[str, str], aliases: Mapping[str, str] | None = None) -> T:
    """The options that were given, by the table; BadOption with the name of the first that cannot be.

    `aliases` are other names for options of the table; `given` has its names in any case.
    """
    rows = {name_of(row).lower(): row for row in options_of(table)}
    other = {alias.lower(): name.lower() for alias, name in (aliases or {}).items()}
    values: dict[str, Any] = {}
    for name, text in given.items():
        row = rows.get(other.get(name.lower(), name.lower()))
        if row is None:
            raise BadOption(_unknown(name, [*map(name_of, rows.values()), *(aliases or {})]))
        if row.field in values:
            raise BadOption(f"options {name} and {name_of(row)} are the same: only one can be given")
        values[row.field] = _value(row, text)
    return table(**values)


def _value(row: Option, text: str) -> Any:
    try:
        value = row.kind.parse(text)
        row.kind.check(value, row.least, row.most)
    except ValueError as error:
        raise BadOption(f"option {name_of(row)}: {error}") from None
    return value


def _unknown(name: str, known: list[str]) -> str:
    by_lower = {each.lower(): each for each in known}
    close = get_close_matches(name.lower(), by_lower, n=1)
    hint = f"did you mean {by_lower[close[0]]}?" if close else f"there are {', '.join(sorted(known))}"
    return f"option {name} is unknown: {hint}"


def table_rows(table: type[Any]) -> Iterator[str]:
    """The options as rows of tables in Markdown, for the docs."""
    for row in options_of(table):
        if row.heading:
            yield from ("", f"**{row.heading}**", "", "| option | type | default | |", "|---|---|---|---|")
        default = row.shown or f"`{row.kind.show(row.default)}`".replace("``", "")
        yield f"| `{name_of(row)}` | {row.kind.name} | {default} | {row.help} |"
