"""Which of nsqlookupd's handlers answers what, and the right that it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.auth.grants import Right
from penstock.daemon.debug import Debug
from penstock.http import Routes
from penstock.nsqlookupd.http.about import About
from penstock.nsqlookupd.http.changes import Changes
from penstock.nsqlookupd.http.lookups import Lookups
from penstock.nsqlookupd.http.metrics import Metrics

if TYPE_CHECKING:
    from penstock.nsqlookupd.service import Service


def routes(service: Service) -> Routes:
    table = Routes()
    about, lookups, changes = About(service), Lookups(service), Changes(service)
    for path, look in (
        ("/debug", about.debug),
        ("/lookup", lookups.lookup),
        ("/topics", lookups.topics),
        ("/channels", lookups.channels),
        ("/nodes", lookups.nodes),
        ("/metrics", Metrics(service).metrics),
    ):
        table.add("GET", path, look, right=Right.READ)
    for path, look in (("/ping", about.ping), ("/info", about.info)):
        table.add("GET", path, look, right=Right.ANY)
    for path, change in (
        ("/topic/create", changes.create_topic),
        ("/topic/delete", changes.delete_topic),
        ("/topic/tombstone", changes.tombstone),
        ("/channel/create", changes.create_channel),
        ("/channel/delete", changes.delete_channel),
    ):
        table.add("POST", path, change, right=Right.ADMIN)
    if service.options.debug_http:
        Debug().add_to(table)
    return table
