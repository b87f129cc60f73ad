from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from penstock.errors import FlushFailed
from penstock.http import Request, Response, always
from penstock.nsqd.http import Ports
from penstock.nsqd.http.about import About


def test_a_node_that_refuses_publishes_says_so_until_it_heals() -> None:
    # given a node with a topic that takes nothing after a failed flush
    node = SimpleNamespace(refused=FlushFailed("t: no space left"))
    about = About(cast("Any", SimpleNamespace(node=node)), Ports())
    request = Request(b"GET", b"/ping", b"", {}, always(Response()), None)
    sick = about.ping(request)
    assert (sick.status, sick.body) == (500, b"NOK - t: no space left")
    # when it heals
    node.refused = None
    # then it is well
    well = about.ping(request)
    assert (well.status, well.body) == (200, b"OK")
