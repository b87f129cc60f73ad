"""Entries of the journal as lines and as JSON: packed messages, ranges and holes spelled out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.log.entries import IN_FLIGHT, READY, unpack_holes, unpack_messages, unpack_ranges

if TYPE_CHECKING:
    from penstock.log.entries import Entry, Message


def fields(entry: Entry) -> dict[str, object]:
    """What an entry says, as JSON can hold it."""
    return {"entry": type(entry).__name__, **{name: _plain(name, value) for name, value in entry._asdict().items()}}


def line(entry: Entry) -> str:
    """The same for a person."""
    told = fields(entry)
    return " ".join([str(told.pop("entry")), *(f"{name}={_short(value)}" for name, value in told.items())])


def _plain(name: str, value: object) -> object:
    if not isinstance(value, bytes):
        return value
    if name == "unfinished":
        return [_message(message) for message in unpack_messages(value)]
    if name == "finished":
        return [list(each) for each in unpack_ranges(value)]
    if name == "holes":
        return [list(each) for each in unpack_holes(value)]
    return value.hex()


def _message(message: Message) -> dict[str, object]:
    state = {IN_FLIGHT: "in flight", READY: "ready"}.get(message.due)
    due = {"state": state} if state else {"state": "waiting", "due_ms": message.due}
    return {"offset": message.offset, "attempts": message.attempts, **due}


def _short(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_short, value))}]"
    if isinstance(value, dict):
        return " ".join(str(each) for each in value.values())
    return str(value)
