"""Which topic and channel a request is about, and what NSQ answers where there is none. Knows no route."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from penstock.daemon.arguments import argument, valid_name
from penstock.errors import HttpError, NameTaken
from penstock.http import json
from penstock.options.duration import duration
from penstock.protocol.batch import MAX_ID
from penstock.protocol.names import is_valid

if TYPE_CHECKING:
    from penstock.broker.channel import Channel
    from penstock.broker.reader import Reader
    from penstock.http import Request, Response
    from penstock.nsqd.home import Home
    from penstock.nsqd.node import Node

_NUMBER: Final = re.compile(r"[0-9]{1,19}")


def topic(request: Request, node: Node) -> Home:
    """The topic that is published to, or made: it is there from now on. LogError where that cannot be written down."""
    names = request.args.get("topic")
    if not names:
        raise HttpError(400, "MISSING_ARG_TOPIC")
    home = node.homes.get(names[0])
    if home is not None:
        return home
    if not is_valid(names[0]):
        raise HttpError(400, "INVALID_TOPIC")
    return node.topic(names[0])


def existing_topic(request: Request, node: Node, *, check: bool = False) -> Home:
    """The topic that something is done to. NSQ looks at its name for `/topic/empty` alone."""
    name = argument(request, "topic")
    if check and not is_valid(name):
        raise HttpError(400, "INVALID_TOPIC")
    return _found(node, name)


def topic_and_channel(request: Request, node: Node) -> tuple[Home, str]:
    """A topic that exists, and the name of a channel that may not."""
    topic_name = valid_name(request, "topic")
    channel_name = valid_name(request, "channel")
    return _found(node, topic_name), channel_name


def existing_channel(request: Request, node: Node) -> tuple[Home, Channel]:
    home, name = topic_and_channel(request, node)
    channel = home.topic.channels.get(name)
    if channel is None and name in home.topic.readers:
        raise NameTaken(f"{home.topic.name}:{name} is a reader")
    if channel is None:
        raise HttpError(404, "CHANNEL_NOT_FOUND")
    return home, channel


def existing_channel_or_reader(request: Request, node: Node) -> tuple[Home, Channel | Reader]:
    """What can be done to either goes by the same routes, so that NSQ's tools can do it."""
    home, name = topic_and_channel(request, node)
    found = home.topic.channels.get(name) or home.topic.readers.get(name)
    if found is None:
        raise HttpError(404, "CHANNEL_NOT_FOUND")
    return home, found


def reader_name(request: Request) -> str:
    name = valid_name(request, "reader")
    if name.endswith("#ephemeral"):
        raise HttpError(400, "INVALID_ARG_READER")
    return name


def existing_reader(request: Request, node: Node) -> tuple[Home, Reader]:
    home = existing_topic(request, node, check=True)
    reader = home.topic.readers.get(reader_name(request))
    if reader is None:
        raise HttpError(404, "READER_NOT_FOUND")
    return home, reader


def of_another_life(request: Request, home: Home) -> Response | None:
    """What is answered where the request means a topic that was deleted, and made again since."""
    incarnation = home.log.birth.incarnation
    if request.arg("incarnation") in (None, incarnation):
        return None
    return json({"message": "OTHER_INCARNATION", "incarnation": incarnation}, 409)


def number(request: Request, what: str) -> int:
    """An offset, a size or a time in ns that has to be there."""
    found = number_if_any(request, what)
    if found is None:
        raise HttpError(400, f"MISSING_ARG_{what.upper()}")
    return found


def number_if_any(request: Request, what: str) -> int | None:
    text = request.arg(what)
    if text is None:
        return None
    if not _NUMBER.fullmatch(text) or int(text) > MAX_ID:
        raise HttpError(400, f"INVALID_ARG_{what.upper()}")
    return int(text)


def duration_if_any(request: Request, what: str) -> int | None:
    """In ns, as Go writes it."""
    text = request.arg(what)
    if text is None:
        return None
    with suppress(ValueError):
        if (found := duration(text)) >= 0:
            return found
    raise HttpError(400, f"INVALID_ARG_{what.upper()}")


def _found(node: Node, name: str) -> Home:
    home = node.homes.get(name)
    if home is None:
        raise HttpError(404, "TOPIC_NOT_FOUND")
    return home
