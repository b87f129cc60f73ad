"""Each nemesis alone for a few rounds, and a short mixture: what was promised holds. `make torture` goes on longer."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from random import Random, SystemRandom

import pytest

from tests.torture import episode
from tests.torture.nemeses import NEMESES

ROUNDS = int(os.environ.get("ROUNDS", "3"))
DISKS = ("folder", "small", "device")
MIXTURE = ("kill", "cut-command", "failing-writes", "deaf-consumer")


def strike(place: Path, names: tuple[str, ...], rounds: int, seed: int) -> None:
    plan, nemeses = episode.draw(Random(seed), names, DISKS)
    if plan.disk == "small" and (why := episode.why_no_small_disk(place)):
        pytest.skip(f"no small disk: {why}")
    done: Counter[str] = Counter()
    outcome = episode.run(place / "episode", plan, nemeses, seed, lambda round_: round_ < rounds, done)
    assert outcome.violations == [], f"seed {seed}, {plan}"
    assert outcome.summary.published > 50
    assert sum(done.values()) >= rounds


@pytest.mark.slow
@pytest.mark.parametrize("name", NEMESES)
def test_what_a_nemesis_does_costs_no_more_than_it_may(tmp_path: Path, name: str) -> None:
    strike(tmp_path, (name,), ROUNDS, SystemRandom().getrandbits(32))


def test_a_short_mixture_costs_nothing_that_was_answered(tmp_path: Path) -> None:
    strike(tmp_path, MIXTURE, 3, 5)
