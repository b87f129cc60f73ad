"""A JSON object as NSQ reads it, which is Go's way. Knows no command.

Keys in any case, the last of equal ones wins, null says nothing, what is not known is passed over, and a value of
another type makes the whole body bad.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class _Object(list[tuple[str, Any]]):
    """A JSON object: its pairs, in order."""


def fields(
    body: bytes, nothing: Mapping[str, str | int | bool], bits: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """The value of each field; where the body says none it is that of `nothing`. ValueError for a bad body.

    Numbers have 64 bits where `bits` does not say another size.
    """
    found: dict[str, Any] = dict(nothing)
    try:
        pairs = json.loads(
            body.decode("utf-8", "replace"), object_pairs_hook=_Object, parse_int=_integer, parse_constant=_refuse
        )
    except RecursionError as error:
        raise ValueError("too many brackets") from error
    if not isinstance(pairs, _Object | None):
        raise ValueError("not an object")
    for key, value in pairs or ():
        field = key.casefold()
        if field in found and value is not None:
            found[field] = _checked(field, value, type(nothing[field]), (bits or {}).get(field, 64))
    return found


def _checked(field: str, value: Any, kind: Any, bits: int) -> Any:
    if type(value) is not kind:
        raise ValueError(f"{field} is of another type")
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise ValueError(f"{field} is too large a number")
    return value


def _integer(digits: str) -> int:
    """A number too large is an error where it is looked at, and no work anywhere."""
    return int(digits[:21])


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")
