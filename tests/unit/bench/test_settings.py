"""What a load is made of."""

from __future__ import annotations

import pytest

from penstock.bench.settings import Address, Settings, address
from penstock.errors import BenchFailed


@pytest.mark.parametrize(
    ("connections", "processes", "spread"),
    [(2, 1, [2]), (5, 2, [3, 2]), (2, 4, [1, 1]), (1000, 3, [334, 333, 333])],
)
def test_connections_are_spread_over_processes(connections: int, processes: int, spread: list[int]) -> None:
    assert Settings(connections=connections, processes=processes).spread == spread


def test_each_run_has_a_topic_of_its_own() -> None:
    assert Settings().topic != Settings().topic


def test_an_address_is_a_host_and_a_port() -> None:
    assert address("127.0.0.1:4150") == Address("127.0.0.1", 4150)
    assert address(":4150") == Address("127.0.0.1", 4150)
    with pytest.raises(BenchFailed):
        address("localhost")
