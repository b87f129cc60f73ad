"""Filters that Spark hands over, as narrower ranges. Spark applies each of them again, so that roughly is enough.

A time narrows the beginning alone: a message is appended at its timestamp or later, a deferred one much later.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import EqualTo, GreaterThan, GreaterThanOrEqual, In, LessThan, LessThanOrEqual

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql.datasource import Filter

_LOWER = (EqualTo, GreaterThan, GreaterThanOrEqual)
_UPPER = (EqualTo, LessThan, LessThanOrEqual)


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What can be left out; None narrows nothing."""

    topics: frozenset[str] | None = None
    first: int = 0
    until: int | None = None
    time: int | None = None  # ns: nothing that was appended before

    def has(self, topic: str) -> bool:
        return self.topics is None or topic in self.topics


def narrowing(filters: Iterable[Filter]) -> Narrowing:
    """All of the filters hold for each row that is wanted."""
    found = Narrowing()
    for each in filters:
        match getattr(each, "attribute", None):
            case ("topic",):
                found = _by_topic(found, each)
            case ("offset",):
                found = _by_offset(found, each)
            case ("timestamp",):
                found = _by_time(found, each)
    return found


def _by_topic(found: Narrowing, each: Filter) -> Narrowing:
    if isinstance(each, (EqualTo, In)):
        named = frozenset(each.value if isinstance(each, In) else [each.value])
        return replace(found, topics=named if found.topics is None else found.topics & named)
    return found


def _by_offset(found: Narrowing, each: Filter) -> Narrowing:
    value: Any = getattr(each, "value", None)
    if not isinstance(value, int):
        return found
    if isinstance(each, _LOWER):
        found = replace(found, first=max(found.first, value))
    if isinstance(each, _UPPER):
        found = replace(found, until=value + 1 if found.until is None else min(found.until, value + 1))
    return found


def _by_time(found: Narrowing, each: Filter) -> Narrowing:
    value: Any = getattr(each, "value", None)
    if not isinstance(each, _LOWER) or not isinstance(value, datetime) or value.tzinfo is None:
        return found
    since = value - datetime(1970, 1, 1, tzinfo=UTC)
    time = (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000
    return replace(found, time=max(found.time or 0, time, 0))
