"""What nsqlookupd answer, and what several of them say together. Knows no socket."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from penstock.client.address import Address
from penstock.errors import LookupFailed

WAIT: Final = 30  # seconds, that an nsqlookupd of Penstock's is asked to wait for another answer


class Node(NamedTuple):
    address: Address
    topics: frozenset[str]


class Found(NamedTuple):
    """One answer; with a revision, the next answer can be waited for."""

    nodes: frozenset[Node]
    revision: str = ""


def lookup_target(topic: str, revision: str) -> str:
    """What to GET; an nsqlookupd of NSQ's passes over what it does not know."""
    target = f"/lookup?topic={quote(topic)}"
    return f"{target}&wait={WAIT}s&since={quote(revision)}" if revision else target


def read_lookup(status: int, body: bytes, revision: bytes, topic: str) -> Found:
    """From the answer of /lookup; a topic that is not known has no nsqd."""
    said = revision.decode("latin-1")
    if status == 404 and b"TOPIC_NOT_FOUND" in body:
        return Found(frozenset(), said)
    producers = _producers(status, body)
    return Found(frozenset(Node(_address(each), frozenset({topic})) for each in producers), said)


def read_nodes(status: int, body: bytes) -> Found:
    """From the answer of /nodes."""
    return Found(frozenset(Node(_address(each), frozenset(_topics(each))) for each in _producers(status, body)))


def _producers(status: int, body: bytes) -> list[dict[str, Any]]:
    if status != 200:
        raise LookupFailed(f"it answers {status}: {body[:100]!r}")
    try:
        said = json.loads(body)
        said = said.get("data") or said  # nsqlookupd from before 1.0 wrap it
        return list(said["producers"] or [])
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise LookupFailed(f"it answers what no nsqlookupd does: {body[:100]!r}") from error


def _address(producer: dict[str, Any]) -> Address:
    try:
        return Address(str(producer["broadcast_address"]), int(producer["tcp_port"]))
    except (KeyError, ValueError, TypeError) as error:
        raise LookupFailed(f"it names an nsqd without an address: {str(producer)[:100]}") from error


def _topics(producer: dict[str, Any]) -> Iterable[str]:
    """Those that are not tombstoned."""
    topics = producer.get("topics") or []
    gone = producer.get("tombstones") or []
    return (topic for place, topic in enumerate(topics) if place >= len(gone) or not gone[place])


class Together:
    """The union of what several nsqlookupd said last: one that does not answer takes nothing away."""

    def __init__(self) -> None:
        self._said: dict[Address, frozenset[Node]] = {}

    def told(self, lookupd: Address, nodes: frozenset[Node]) -> bool:
        """Whether that changes anything."""
        before = self._said.get(lookupd)
        self._said[lookupd] = nodes
        return before != nodes

    @property
    def addresses(self) -> frozenset[Address]:
        return frozenset(node.address for nodes in self._said.values() for node in nodes)

    def having(self, topic: str) -> Collection[Address]:
        return {node.address for nodes in self._said.values() for node in nodes if topic in node.topics}
