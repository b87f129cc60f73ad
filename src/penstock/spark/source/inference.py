"""The struct of JSON bodies, found out from the first messages that a batch would read."""

from __future__ import annotations

import json
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import penstock.spark.source.task as tasks
from penstock.errors import BadOption
from penstock.protocol.batch import records

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from penstock.spark.source.options import SourceOptions

SAMPLE: Final = 1000  # messages


def inferred(options: SourceOptions) -> str:
    """The struct as DDL."""
    found = merged(_values(_sample(options)))
    if not isinstance(found, dict) or not found:
        raise BadOption("option schema: no JSON object is among the first messages, so the option has to say it")
    return ddl(found)


def shape_of_bodies(options: SourceOptions) -> dict[str, Any]:
    """The fields of the first messages and their kinds, where most of these are JSON objects; else none."""
    sample = _sample(options)
    values = list(_values(sample))
    found = merged(values) if 2 * len(values) > len(sample) else None
    return found if isinstance(found, dict) else {}


def _sample(options: SourceOptions) -> list[bytes]:
    """Bodies of the first messages."""
    from penstock.spark.source.batch_plan import planned

    found: list[bytes] = []
    for task in planned(options):
        with closing(tasks.connection_of(task, options)) as connection:
            for wanted in task.part.ranges:
                for chunk in tasks.fetch_of(connection, wanted, options).chunks():
                    found += [each.body for each in islice(records(chunk.data), SAMPLE - len(found))]
                    if len(found) >= SAMPLE:
                        return found
    return found


def _values(bodies: Iterable[bytes]) -> Iterator[Any]:
    for body in bodies:
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield shape(value)


def shape(value: Any) -> Any:
    """What kind of value it is: a name of Spark's, or a dict of fields, or a list with the kind of its items."""
    if value is None:
        return None
    if isinstance(value, dict):
        return {name: shape(each) for name, each in value.items()}
    if isinstance(value, list):
        return [merged(map(shape, value))]
    if isinstance(value, bool):
        return "BOOLEAN"
    if isinstance(value, int):
        return "BIGINT" if -(1 << 63) <= value < 1 << 63 else "DOUBLE"
    return "DOUBLE" if isinstance(value, float) else "STRING"


def merged(shapes: Iterable[Any]) -> Any:
    """The kind that all of them fit; what nothing else fits is a string."""
    found: Any = None
    for each in shapes:
        found = _both(found, each)
    return found


def _both(one: Any, other: Any) -> Any:
    if one is None or other is None or one == other:
        return other if one is None else one
    if isinstance(one, dict) and isinstance(other, dict):
        return {name: _both(one.get(name), other.get(name)) for name in {**one, **other}}
    if isinstance(one, list) and isinstance(other, list):
        return [_both(one[0], other[0])]
    return "DOUBLE" if {repr(one), repr(other)} == {"'BIGINT'", "'DOUBLE'"} else "STRING"


def ddl(kind: Any) -> str:
    """As Spark reads it; what was never there is a string."""
    if isinstance(kind, dict):
        fields = ", ".join(f"`{name.replace('`', '``')}`: {ddl(kind[name])}" for name in sorted(kind))
        return f"STRUCT<{fields}>" if fields else "STRING"
    if isinstance(kind, list):
        return f"ARRAY<{ddl(kind[0])}>"
    return kind or "STRING"
