"""nsqd's HTTP routes: what an operator looks at. Knows the node through `stats`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.http import Response, Routes, error, json, plain
from penstock.nsqd.stats import stats
from penstock.options.kinds import FALSE, TRUE

if TYPE_CHECKING:
    from penstock.http import Request
    from penstock.nsqd.service import Service


def routes(service: Service) -> Routes:
    table = Routes()

    def ping(_request: Request) -> Response:
        refused = service.node.refused
        return plain("OK") if refused is None else plain(f"NOK - {refused}", 500)

    def show_stats(request: Request) -> Response:
        if request.arg("format") != "json":
            return error(400, "INVALID_FORMAT")
        wanted = request.arg("include_clients") or "true"
        if wanted not in TRUE + FALSE:
            return error(400, "INVALID_INCLUDE_CLIENTS")
        found = stats(service, request.arg("topic") or "", request.arg("channel") or "", clients=wanted in TRUE)
        return json(found)

    table.add("GET", "/ping", ping, quiet=True)
    table.add("GET", "/stats", show_stats)
    return table
