"""The OpenAPI document: all routes and no other, and every word of it is used."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.http import Response
from penstock.nsqd.http import Ports, routes
from penstock.nsqd.http.openapi import document
from penstock.nsqd.http.operations import EVERYWHERE, OPERATIONS, PARAMETERS
from penstock.nsqd.http.shapes import SHAPES
from penstock.nsqd.options import Options
from tests.unit.nsqd.http.test_table import PAGE


def known(**options: Any) -> set[tuple[str, str]]:
    service = cast("Any", SimpleNamespace(options=Options(**options), node=None))
    return routes(service, Ports(), lambda: None).known


def test_every_route_is_described_and_no_other() -> None:
    found = document(known(debug_http=True))["paths"]
    told = {f"{method.upper()} {path}" for path, methods in found.items() for method in methods}
    assert told == OPERATIONS.keys()


def test_what_is_not_served_is_not_described() -> None:
    assert not [path for path in document(known())["paths"] if path.startswith("/debug")]


def test_a_route_that_nobody_described_is_told() -> None:
    with pytest.raises(KeyError, match="GET /new"):
        document({("GET", "/new")})


def test_the_document_is_served() -> None:
    service = cast("Any", SimpleNamespace(options=Options(), node=None))
    route = routes(service, Ports(), lambda: None).find(b"GET", b"/openapi.json")
    answer = route.handler(cast("Any", None))
    assert isinstance(answer, Response)
    assert isinstance(answer.body, bytes)
    assert json.loads(answer.body) == document(known())


def test_parameters_and_shapes_are_all_used() -> None:
    taken = {word.rstrip("!") for operation in OPERATIONS.values() for word in operation.takes.split()}
    assert taken == PARAMETERS.keys()
    text = json.dumps(document(known(debug_http=True)))
    assert set(re.findall(r'"#/components/schemas/([A-Za-z]+)"', text)) == SHAPES.keys()


def test_the_page_knows_every_error() -> None:
    page = PAGE.read_text()
    everywhere = set(re.findall(r"[A-Z_]{5,}", EVERYWHERE))
    words = {word for operation in OPERATIONS.values() for word in re.findall(r"[A-Z_]{5,}", operation.errors)}
    assert [word for word in sorted(words - everywhere) if f"`{word}`" not in page] == []
