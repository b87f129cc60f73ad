"""Which nodes there are: the addresses in the options, or those that nsqlookupd names. Knows no topic's log."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Protocol

from penstock.errors import NodeFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.spark.http import Connection

_logger = logging.getLogger("penstock.spark")


class Wanted(Protocol):
    """What is asked of the options of a source or a sink."""

    @property
    def nsqd(self) -> tuple[str, ...]: ...

    @property
    def lookupd(self) -> tuple[str, ...]: ...

    def chooses(self, topic: str) -> bool: ...


def addresses(options: Wanted, connect: Callable[[str], Connection]) -> dict[str, bool]:
    """The URLs of the nodes, and whether each has something that is read, as far as is known."""
    if options.nsqd:
        return dict.fromkeys(options.nsqd, True)
    found: dict[str, bool] = {}
    failures: list[NodeFailed] = []
    for lookupd in options.lookupd:
        try:
            for producer in connect(lookupd).json("/nodes")["producers"] or ():
                url, has = _url(producer), any(map(options.chooses, producer["topics"] or ()))
                found[url] = found.get(url, False) or has
        except NodeFailed as error:
            failures.append(error)
        except (KeyError, TypeError, AttributeError):
            failures.append(NodeFailed(f"{lookupd}/nodes names no nodes: is it an nsqlookupd?"))
    if len(failures) == len(options.lookupd):
        raise failures[0]
    for failure in failures:
        _logger.warning("%s; the other nsqlookupd are believed", failure)
    return found


def _url(producer: Any) -> str:
    host = producer["broadcast_address"]
    return f"http://{f'[{host}]' if ':' in host else host}:{producer['http_port']}"
