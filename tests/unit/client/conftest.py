"""Each scene is played on asyncio's own loop and on uvloop."""

from __future__ import annotations

from functools import partial

import pytest

from tests.unit.client import fake


@pytest.fixture(params=fake.LOOPS)
def run(request: pytest.FixtureRequest) -> fake.Run:
    return partial(fake.run, loop=request.param)
