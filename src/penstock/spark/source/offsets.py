"""Where a query stands, as Spark's checkpoint keeps it: the offset JSON. Knows no node and no Spark.

    {"v": 1, "nodes": {identity: {topic: [incarnation, offset]}},    all below is read
     "split": records a partition has at most, "reader": the position's name on the nodes,
     "from": {identity: {topic: offset}}, "skip": {identity: {topic: [[first, next], ...]}}, "initial": true}

What a batch reads is decided once, when its end is planned, and stands in that end: `split`, and where it does not
simply go on from the batch before, `from` (a topic that is new to the query, or whose messages are gone) and `skip`
(holes). So a batch that is read again after a crash is the same batch, whatever became of the nodes.

`initial` marks a beginning that stands in no checkpoint yet: Spark asks for it again after a crash in the first batch,
and the answer may be another. The first end therefore says `from` for all that it reads.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from penstock.errors import SparkError

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION: Final = 1

Span = tuple[int, int]  # offsets: first, next


class Place(NamedTuple):
    """One topic's log on one node."""

    node: str  # its identity
    topic: str


class Position(NamedTuple):
    incarnation: str
    offset: int


@dataclass(frozen=True, slots=True)
class Offsets:
    """Positions, and how the batch that ends with them is read."""

    positions: Mapping[Place, Position]
    split: int = 0
    reader: str = ""
    begins: Mapping[Place, int] = field(default_factory=dict)  # `from`
    skips: Mapping[Place, tuple[Span, ...]] = field(default_factory=dict)
    initial: bool = False

    def as_json(self) -> dict[str, Any]:
        """As Spark keeps it; what is empty is left out."""
        nodes = _nested({place: list(position) for place, position in self.positions.items()})
        skips = {place: [list(span) for span in spans] for place, spans in self.skips.items()}
        rest = {
            "split": self.split,
            "reader": self.reader,
            "from": _nested(self.begins),
            "skip": _nested(skips),
            "initial": self.initial,
        }
        return {"v": VERSION, "nodes": nodes, **{name: value for name, value in rest.items() if value}}


def offsets_of(found: Any) -> Offsets:
    """What `as_json` wrote; SparkError for anything else."""
    if isinstance(found, dict) and found.get("v", VERSION) != VERSION:
        raise SparkError(
            f"the offsets are of version {found['v']}, written by a newer Penstock: this one reads {VERSION}"
        )
    try:
        return Offsets(
            {place: Position(str(at[0]), int(at[1])) for place, at in _flat(found["nodes"])},
            int(found.get("split", 0)),
            str(found.get("reader", "")),
            {place: int(first) for place, first in _flat(found.get("from", {}))},
            {place: tuple((int(a), int(b)) for a, b in spans) for place, spans in _flat(found.get("skip", {}))},
            found.get("initial", False) is True,
        )
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise SparkError(f'these are no offsets of format("nsq"): {json.dumps(found)[:200]}') from None


def _nested(flat: Mapping[Place, Any]) -> dict[str, dict[str, Any]]:
    """In order, so that equal offsets are equal texts."""
    nodes: dict[str, dict[str, Any]] = {}
    for place in sorted(flat):
        nodes.setdefault(place.node, {})[place.topic] = flat[place]
    return nodes


def _flat(nested: Mapping[str, Mapping[str, Any]]) -> list[tuple[Place, Any]]:
    return [(Place(node, topic), value) for node, topics in nested.items() for topic, value in topics.items()]
