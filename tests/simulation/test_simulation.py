"""A node, life after life, against a model: the seed says all that happens, and is printed when it fails."""

from __future__ import annotations

import pytest

from tests.simulation.moves import Scene, Simulation

SIMPLE = {
    "connect": 3, "publish": 8, "speak": 20, "ask": 6, "finish": 8, "leave": 1, "pass_time": 6,
    "begin_work": 4, "end_work": 4, "kill": 1,
}  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_a_topic_with_a_channel_over_kills(seed: int) -> None:
    Simulation(seed, Scene(weights=SIMPLE)).run(1000)
