"""The driver's look at the nodes: who is there, and what their logs hold. Plans nothing.

Each look asks all anew: nodes come and go, and change their addresses; their identity stays. Connections are kept.
A node that does not answer is waited for, unless the caller cannot do without it; one that took long to fail is left
alone for ten times as long, so that it does not hold up the others.
"""

from __future__ import annotations

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from penstock.errors import NodeFailed
from penstock.spark.http import Access, Answer, Connection, patiently
from penstock.spark.source import loss
from penstock.spark.source.discovery import addresses
from penstock.spark.source.log import Log, log_of
from penstock.spark.source.offsets import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from penstock.spark.source.loss import Loss
    from penstock.spark.source.offsets import Offsets, Position
    from penstock.spark.source.options import SourceOptions

AT_ONCE: Final = 16  # nodes that are asked at the same time
PATIENCE: Final = 10  # times as long as it took to fail, a node is left alone

_logger = logging.getLogger("penstock.spark")


@dataclass(frozen=True, slots=True)
class View:
    """What one look found."""

    nodes: Mapping[str, str]  # addresses of the nodes that answered, by identity
    logs: Mapping[Place, Log]
    silent: tuple[NodeFailed, ...] = ()


@dataclass(slots=True)
class _Node:
    """What is remembered of an address."""

    connection: Connection
    identity: str = ""  # when it answered last
    silent: bool = False
    again: float = 0.0  # when it is asked again
    logs: list[Log] = field(default_factory=list)


class Cluster:
    """For the process that plans a query; it is not sent anywhere."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._access = Access.of(options, options.timeout)
        self._nodes: dict[str, _Node] = {}
        self._lookupds: dict[str, Connection] = {}

    def close(self) -> None:
        for connection in [*self._lookupds.values(), *(node.connection for node in self._nodes.values())]:
            connection.close()
        self._lookupds.clear()
        self._nodes.clear()

    def look(self, reader: str = "", *, needed: bool = False) -> View:
        """What there is now; with `needed`, all nodes that are known of must answer, else NodeFailed."""
        found = self._addresses(needed)
        if not found and needed:
            raise NodeFailed(f"{', '.join(self._options.lookupd)}: nsqlookupd knows no nsqd")
        urls = [url for url, has in found.items() if has or (url in self._nodes and self._nodes[url].identity)]
        nodes = [self._nodes.setdefault(url, _Node(self._connect(url))) for url in urls]
        look = self._must_answer if needed else self._may_answer
        failures = [failure for failure in _each(lambda node: look(node, reader), nodes) if failure]
        there = [node for node in nodes if not node.silent]
        return View(_identities(there), {log.place: log for node in there for log in node.logs}, tuple(failures))

    def _addresses(self, needed: bool) -> dict[str, bool]:
        """As `discovery` finds them; where no nsqlookupd answers, those that it named before."""
        known = dict.fromkeys(self._nodes, True)
        try:
            tries = 1 if known and not needed else self._options.tries
            return patiently(lambda: addresses(self._options, self._lookupd), tries)
        except NodeFailed as error:
            if needed or not known:
                raise
            _logger.warning("%s; the nodes that it named before are asked", error)
            return known

    def gone(self, start: Offsets, view: View) -> dict[Place, Loss]:
        """What the query has read of and is not there any more, for good."""
        found: dict[Place, Loss] = {}
        for place, position in start.positions.items():
            if place in view.logs or not self._options.chooses(place.topic):
                continue
            if url := view.nodes.get(place.node):
                found[place] = loss.topic_gone(place, url, position)
            elif self._options.nsqd and not view.silent:
                found[place] = loss.node_gone(place, position, self._options.nsqd)
        return found

    def at_time(self, logs: Iterable[Log], time: int) -> dict[Place, int]:
        """The first offset of each log that was appended at that time or later."""
        return {log.place: self._offset_at(log, time) for log in logs}

    def _offset_at(self, log: Log, time: int) -> int:
        target = f"/log/at?topic={quote(log.place.topic)}&timestamp={time}"
        connection = self._connection(log.url)
        return int(patiently(lambda: connection.json(target), self._options.tries)["offset"])

    def move_reader(self, name: str, url: str, topic: str, position: Position) -> None:
        """Tell the node that all below is read. A hint: what goes wrong is logged, and made good by the next one."""
        target = f"/reader/commit?topic={quote(topic)}&reader={quote(name)}"
        try:
            answer = self._connection(url).ask(
                "POST", f"{target}&offset={position.offset}&incarnation={position.incarnation}"
            )
        except NodeFailed as error:
            _logger.warning("reader %s of topic %s: %s", name, topic, error)
            return
        if answer.status != 200:
            _logger.warning("reader %s of topic %s: %s answers %s", name, topic, url, answer.message)

    # --- one node

    def _must_answer(self, node: _Node, reader: str) -> None:
        patiently(lambda: self._ask(node, reader), self._options.tries)

    def _may_answer(self, node: _Node, reader: str) -> NodeFailed | None:
        began = monotonic()
        if began < node.again:
            return NodeFailed(f"{node.connection.url} did not answer a moment ago")
        try:
            self._ask(node, reader)
        except NodeFailed as error:
            if not error.passing:
                raise
            if not node.silent:
                _logger.warning("%s; it is waited for", error)
            node.silent, node.again = True, monotonic() + PATIENCE * (monotonic() - began)
            return error
        return None

    def _ask(self, node: _Node, reader: str) -> None:
        """Who it is, and what its logs hold."""
        self._who(node)
        found: list[Log] = []
        for topic in self._topics(node):
            target = f"/log?topic={quote(topic)}" + (f"&reader={quote(reader)}" if reader else "")
            if (answer := node.connection.json_if_any(target)) is not None:
                found.append(log_of(node.connection.url, answer))
        if node.silent:
            _logger.warning("%s answers again", node.connection.url)
        node.logs, node.silent, node.again = found, False, 0.0

    def _who(self, node: _Node) -> None:
        identity = self._info(node).get("node")
        url = node.connection.url
        if not isinstance(identity, str):
            raise NodeFailed(f"{url} is no Penstock nsqd: an original one has no log to read by offset")
        if node.identity and node.identity != identity:
            _logger.warning("%s is another node now: %s, and was %s", url, identity, node.identity)
        node.identity = identity

    def _info(self, node: _Node) -> dict[str, Any]:
        """What it says of itself; over TLS where it wants that, on the port that it names, as NSQ's tools do it."""
        try:
            return dict(node.connection.json("/info"))
        except NodeFailed as error:
            port = _https_port(node.connection.ask("GET", "/info")) if error.status == 403 else 0
            if not port:
                raise
        node.connection.close()
        node.connection = self._connect(f"https://{urlsplit(node.connection.url).netloc.rpartition(':')[0]}:{port}")
        return dict(node.connection.json("/info"))

    def _topics(self, node: _Node) -> Iterable[str]:
        if self._options.topic:
            return self._options.topic
        found = node.connection.json("/stats?format=json&include_clients=false&include_mem=false")["topics"]
        return [topic["topic_name"] for topic in found or () if self._options.chooses(topic["topic_name"])]

    def _connect(self, url: str) -> Connection:
        return Connection(url, self._access)

    def _connection(self, url: str) -> Connection:
        """That of a node that has answered."""
        return next(node.connection for node in self._nodes.values() if node.connection.url == url)

    def _lookupd(self, url: str) -> Connection:
        return self._lookupds.setdefault(url, self._connect(url))


def _each(look: Callable[[_Node], NodeFailed | None], nodes: list[_Node]) -> list[NodeFailed | None]:
    if len(nodes) < 2:
        return [look(node) for node in nodes]
    with ThreadPoolExecutor(min(AT_ONCE, len(nodes))) as pool:
        return list(pool.map(look, nodes))


def _https_port(answer: Answer) -> int:
    try:
        return int(json.loads(answer.body)["https_port"])
    except (ValueError, KeyError, TypeError):
        return 0


def _identities(nodes: list[_Node]) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in nodes:
        url = found.setdefault(node.identity, node.connection.url)
        if url != node.connection.url:
            raise NodeFailed(
                f"{url} and {node.connection.url} are one node ({node.identity}): two addresses of it, or a copy of "
                "its data path; name it once"
            )
    return found
