"""The nsqd that a sink publishes to: which they are, what they are, what they take. Asked once a process and minute.

Their order is that of the option `nsqd`; a chunk's node follows from its number, so the order must stay.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.errors import SparkError
from penstock.spark.http import Access, Connection, patiently
from penstock.spark.sink.options import AT_LEAST_ONCE, EXACTLY_ONCE
from penstock.spark.sink.rows import Limits
from penstock.spark.source.discovery import addresses

if TYPE_CHECKING:
    from penstock.spark.sink.options import SinkOptions

TRIES: Final = 5
_REMEMBERED: Final = 60.0  # seconds
_COUNT: Final = 4  # bytes of an MPUB's count, and of a message's size
_MS: Final = 10**6

_known: dict[object, tuple[float, Nodes]] = {}


@dataclass(frozen=True, slots=True)
class Nodes:
    """As they were found."""

    urls: tuple[str, ...]
    limits: Limits
    once: bool  # each of them knows a batch that comes again


def nodes_of(options: SinkOptions) -> Nodes:
    """Those of the options; remembered for the tasks that this process runs next."""
    asked = (options.nsqd, options.lookupd, options.delivery)
    found = _known.get(asked)
    if found is None or time.monotonic() - found[0] > _REMEMBERED:
        found = _known[asked] = time.monotonic(), _look(options)
    return found[1]


def _look(options: SinkOptions) -> Nodes:
    access = Access.of(options)
    urls = tuple(sorted(_discovered(options, access))) if options.lookupd else options.nsqd
    limits, all_ours = Limits(), True
    for url in urls:
        with closing(Connection(url, access)) as connection:
            ours = patiently(lambda: "node" in connection.json("/info"), TRIES)
            found = _limits(connection)
        all_ours = all_ours and ours
        limits = Limits(*map(min, limits, found)) if url is not urls[0] else found
        if not ours and options.delivery == EXACTLY_ONCE:
            raise SparkError(f"{url} is no Penstock nsqd and would not know what it was sent before: use at-least-once")
    once = options.delivery != AT_LEAST_ONCE and bool(options.nsqd) and all_ours
    return Nodes(tuple(urls), limits, once)


def _discovered(options: SinkOptions, access: Access) -> dict[str, bool]:
    with ExitStack() as connections:

        def connect(url: str) -> Connection:
            return connections.enter_context(closing(Connection(url, access)))

        found = patiently(lambda: addresses(options, connect), TRIES)
    if not found:
        raise SparkError(f"{', '.join(options.lookupd)}: no nsqd is registered there")
    return found


def _limits(connection: Connection) -> Limits:
    usual = Limits()
    publish = (_setting(connection, "max_body_size") or usual.publish) - _COUNT
    message = min(_setting(connection, "max_msg_size") or usual.message, publish - _COUNT)
    return Limits(message, (_setting(connection, "max_req_timeout") or usual.delay * _MS) // _MS, publish)


def _setting(connection: Connection, name: str) -> int | None:
    """An option of the node, where it tells."""
    answer = patiently(lambda: connection.ask("GET", f"/config/{name}"), TRIES)
    try:
        return int(answer.body) if answer.status == 200 else None
    except ValueError:
        return None
