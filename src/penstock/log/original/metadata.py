"""nsqd.dat: the topics and channels that nsqd makes at its start, as JSON. Knows no queue."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple


class ChannelEntry(NamedTuple):
    name: str
    paused: bool


class TopicEntry(NamedTuple):
    name: str
    paused: bool
    channels: tuple[ChannelEntry, ...]


class Metadata(NamedTuple):
    """Names stand as they were read: whether they are valid is for the reader to see."""

    version: str
    topics: tuple[TopicEntry, ...]


def parse(text: bytes) -> Metadata | None:
    """What the file says, or None where nsqd would refuse to start from it."""
    try:
        whole = _object(json.loads(text))
        return Metadata(_text(whole, "version"), tuple(_topic(entry) for entry in _list(whole, "topics")))
    except (TypeError, ValueError, RecursionError):
        return None


def encode(metadata: Metadata) -> bytes:
    topics = [
        {
            "name": topic.name,
            "paused": topic.paused,
            "channels": [{"name": channel.name, "paused": channel.paused} for channel in topic.channels],
        }
        for topic in metadata.topics
    ]
    return json.dumps({"topics": topics, "version": metadata.version}, separators=(",", ":")).encode()


def _topic(entry: object) -> TopicEntry:
    fields = _object(entry)
    channels = (_object(channel) for channel in _list(fields, "channels"))
    return TopicEntry(
        _text(fields, "name"),
        _flag(fields, "paused"),
        tuple(ChannelEntry(_text(channel, "name"), _flag(channel, "paused")) for channel in channels),
    )


# In Go's JSON whatever is missing or null is the empty value, and a name's case does not matter.


def _object(value: object) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TypeError("no object")
    return {name.lower(): field for name, field in value.items()}


def _list(fields: dict[str, Any], name: str) -> Iterable[object]:
    value = fields.get(name)
    if value is not None and not isinstance(value, list):
        raise TypeError("no list")
    return value or ()


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise TypeError("no text")
    return value or ""


def _flag(fields: dict[str, Any], name: str) -> bool:
    value = fields.get(name)
    if value is not None and not isinstance(value, bool):
        raise TypeError("no flag")
    return bool(value)
