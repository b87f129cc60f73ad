"""A thousand consumers with RDY 1 on one channel, until it is empty."""

from __future__ import annotations

from typing import Final

from penstock.bench.loads.sub import run

__all__ = ["DEFAULTS", "TAKES", "run"]

TAKES: Final = ("messages", "connections", "processes", "ready", "size", "batch")
DEFAULTS: Final = {"connections": 1_000, "ready": 1, "messages": 200_000}
