"""What tests of a daemon's HTTP API begin with; a module that wants another daemon has fixtures of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.daemon import Nsqd
from tests.integration.http_client import Http


@pytest.fixture(scope="module")
def nsqd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nsqd]:
    """One for all tests of a module: each has topics of its own."""
    daemon = Nsqd(tmp_path_factory.mktemp("nsqd"))
    yield daemon
    assert daemon.stop() == 0
    daemon.assert_calm()


@pytest.fixture
def web(nsqd: Nsqd) -> Iterator[Http]:
    client = Http(nsqd.http)
    yield client
    client.close()
