"""Which of nsqd's handlers answers what, and the right that it takes. Those that NSQ does not log are quiet."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from penstock.auth.grants import Right
from penstock.daemon.debug import Debug
from penstock.http import Routes
from penstock.nsqd.http.about import About
from penstock.nsqd.http.blocks import Blocks
from penstock.nsqd.http.config import TOO_BIG, Config
from penstock.nsqd.http.doing import doing
from penstock.nsqd.http.log import Log
from penstock.nsqd.http.metrics import Metrics
from penstock.nsqd.http.openapi import OpenApi
from penstock.nsqd.http.peeking import Peeking
from penstock.nsqd.http.producers import Producers
from penstock.nsqd.http.publishing import Publishing
from penstock.nsqd.http.readers import Readers
from penstock.nsqd.http.rewinding import Rewinding
from penstock.nsqd.http.stats import Stats
from penstock.nsqd.http.topics import Topics

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.nsqd.service import Service


PUBLISH, SUBSCRIBE, ADMIN, READ, ANY = Right.PUBLISH, Right.SUBSCRIBE, Right.ADMIN, Right.READ, Right.ANY


class Ports(NamedTuple):
    """Where the node listens; -1 where it is no TCP port."""

    tcp: int = -1
    http: int = -1


def routes(service: Service, ports: Ports, on_level: Callable[[], None]) -> Routes:
    """All of them; `on_level` is told of another log level, when it is set."""
    table = Routes()
    about, stats, config = About(service, ports), Stats(service), Config(service, on_level)
    table.add("GET", "/ping", about.ping, right=ANY)
    table.add("GET", "/info", about.info, right=ANY)
    table.add("GET", "/stats", stats.stats, right=READ)
    table.add("GET", "/metrics", Metrics(service).metrics, right=READ)
    table.add("GET", "/openapi.json", OpenApi(table).openapi, right=ANY)
    table.add("GET", "/config/:opt", config.get, right=READ)
    size = service.options.max_msg_size
    table.add("PUT", "/config/:opt", config.put, max_body=size, too_big=TOO_BIG, right=ADMIN)
    _publishing(table, service)
    _changes(table, service)
    blocks = Blocks(service)
    _channels(table, service, blocks)
    _log(table, Log(service, blocks))
    producers = Producers(service)  # whose names nobody knows but themselves
    table.add("GET", "/producer", producers.producer, right=ANY)
    table.add("POST", "/producer/mark", doing(service, producers.mark), right=ANY)
    if service.options.debug_http:
        Debug().add_to(table)
    return table


def _publishing(table: Routes, service: Service) -> None:
    publishing, options = Publishing(service), service.options
    add = partial(table.add, "POST", quiet=True, right=PUBLISH)
    for path in ("/pub", "/put"):  # its old name, which NSQ's README still says
        add(path, publishing.pub, max_body=options.max_msg_size, too_big="MSG_TOO_BIG")
    for path in ("/mpub", "/mput"):
        add(path, publishing.mpub, max_body=options.max_body_size)


def _channels(table: Routes, service: Service, blocks: Blocks) -> None:
    """What NSQ's channels cannot."""
    rewinding = Rewinding(service, blocks)
    create = doing(service, Topics(service).create_channel)
    table.add("GET", "/channel/peek", Peeking(service, blocks).peek, right=SUBSCRIBE)
    add = partial(table.add, "POST", right=ADMIN)
    add("/channel/rewind", rewinding.rewind)
    add("/channel/create", lambda r: create(r) if r.arg("from") is None else rewinding.create(r))


def _log(table: Routes, log: Log) -> None:
    add = partial(table.add, "GET", right=SUBSCRIBE)
    add("/log", log.log)
    add("/log/read", log.read, quiet=True)
    add("/log/at", log.at)


def _changes(table: Routes, service: Service) -> None:
    topics, readers = Topics(service), Readers(service)
    for path, change in (
        ("/topic/create", topics.create_topic),
        ("/topic/delete", topics.delete_topic),
        ("/topic/empty", topics.empty_topic),
        ("/topic/pause", topics.pause_topic),
        ("/topic/unpause", topics.unpause_topic),
        ("/topic/retain", topics.retain),
        ("/channel/delete", topics.delete_channel),
        ("/channel/empty", topics.empty_channel),
        ("/channel/pause", topics.pause_channel),
        ("/channel/unpause", topics.unpause_channel),
    ):
        table.add("POST", path, doing(service, change), right=ADMIN)
    add = partial(table.add, "POST", right=SUBSCRIBE)
    add("/reader/commit", doing(service, readers.commit))
    add("/reader/delete", doing(service, readers.delete))
