"""The table of a program's options: a frozen dataclass whose fields say all that is to be known of each.

    @dataclass(frozen=True, kw_only=True)
    class Options:
        msg_timeout: Duration = option(duration("60s"), "how long a message may be in flight", heading="Messages")

The annotation is the type, the name of the field is the key in the config file and, with hyphens, the flag.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from penstock.options.kinds import KINDS, LARGEST

if TYPE_CHECKING:
    from penstock.options.kinds import Kind


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """One row.

    `needs` names a feature that is not there: a value that asks for it is refused (any but an empty one, false, zero).
    """

    field: str
    flag: str
    key: str
    kind: Kind[Any]
    default: Any  # MISSING where the machine decides
    help: str
    heading: str = ""  # begins a group, which goes on until the next heading
    shown: str = ""  # what stands for the default, where its value would not say it
    least: float = 0
    most: float = LARGEST
    needs: str = ""
    deprecated: str = ""  # what to use instead
    ours: bool = False  # NSQ has no such option


def option(
    default: Any, help_: str, *, kind: Kind[Any] | None = None, flag: str = "", key: str = "", **facts: Any
) -> Any:
    """A field of an options class; `facts` are those of Option. A default that the machine decides is a function."""
    metadata = {"help": help_, "kind": kind, "flag": flag, "key": key, **facts}
    if callable(default):
        return dataclasses.field(default_factory=default, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def options_of(table: type) -> tuple[Option, ...]:
    """The rows of an options class, in the order in which they are written.

    Names in the class's `LAST` are the last, and an option that NSQ has for another program alone stands in its `OURS`.
    """
    last: frozenset[str] = getattr(table, "LAST", frozenset())
    ours: frozenset[str] = getattr(table, "OURS", frozenset())
    fields = sorted(dataclasses.fields(table), key=lambda field: field.name in last)
    return tuple(_row(field, field.name in ours) for field in fields)


def _row(field: dataclasses.Field[Any], ours: bool) -> Option:
    facts = dict(field.metadata)
    facts["ours"] = ours or facts.get("ours", False)
    kind = facts.pop("kind") or KINDS[str(field.type)]
    flag = facts.pop("flag") or field.name.replace("_", "-")
    key = facts.pop("key") or field.name
    return Option(field=field.name, flag=flag, key=key, kind=kind, default=field.default, **facts)
