"""The routes, and the page that tells of them."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from penstock.nsqd.http import Ports, routes
from penstock.nsqd.options import Options

PAGE = Path(__file__).parents[4] / "docs" / "http-api.md"


def table(**options: Any) -> set[tuple[str, str]]:
    service = cast("Any", SimpleNamespace(options=Options(**options), node=None))
    return routes(service, Ports(), lambda: None).known


def test_the_page_has_every_route_and_no_other() -> None:
    # given the routes that the page names
    told = set(re.findall(r"`(GET|POST|PUT) (/[^`?]*)", PAGE.read_text()))
    # then they are those of the table, and each option that can be set by name
    told = {(method, re.sub(r"^/config/.*", "/config/:", path)) for method, path in told}
    assert told == table(debug_http=True)


def test_what_is_inside_has_routes_only_where_it_was_asked_for() -> None:
    assert not [path for _, path in table() if path.startswith("/debug")]
