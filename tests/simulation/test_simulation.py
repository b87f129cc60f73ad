"""A node, life after life, against a model: the seed says all that happens, and is printed when it fails."""

from __future__ import annotations

import os
from random import SystemRandom

import pytest

from tests.simulation.moves import Scene, Simulation

CLIENTS = {
    "connect": 3, "publish": 8, "defer": 2, "speak": 24, "ask": 6, "finish": 8, "requeue": 2, "touch": 1,
    "end_subscription": 0.3, "leave": 1, "stall": 0.7, "read_some": 1,
}  # fmt: skip
TIME = {"pass_time": 6, "begin_work": 4, "end_work": 4}
ADMIN = {
    "pause_topic": 0.3, "pause_channel": 0.3, "empty_topic": 0.2, "empty_channel": 0.2, "make_channel": 0.4,
    "delete_channel": 0.1, "delete_topic": 0.1, "make_channel_from": 0.3, "rewind": 0.4, "retain": 0.3,
    "commit": 0.4, "delete_reader": 0.1, "peek": 0.5,
}  # fmt: skip
ONCE = {"publish_once": 10}
LIVES = {"kill": 0.5, "kill_soon": 0.5, "stop": 0.3}
CUTS = {"cut": 0.5}
DISK = {"trouble": 0.4, "heal": 0.6, "chill": 0.5}
SIMPLE = {"connect": 3, "publish": 8, "speak": 20, "ask": 6, "finish": 8, "leave": 1, **TIME, "kill": 1}

SCENES = {
    "simple": Scene(weights=SIMPLE),
    "clients": Scene(weights={**CLIENTS, **TIME}),
    "kills": Scene(weights={**CLIENTS, **TIME, **LIVES}),
    "cuts": Scene(weights={**CLIENTS, **TIME, **CUTS}),
    "admin": Scene(("a", "b"), ("c", "d"), 6, weights={**CLIENTS, **TIME, **ADMIN}),
    "wide": Scene(("a", "b"), ("c", "d"), 6, weights={**CLIENTS, **TIME, **ADMIN, **LIVES, **CUTS}),
    "slow": Scene(weights={**CLIENTS, **TIME, "chill": 1}),
    "dragging": Scene(weights={**CLIENTS, **TIME, **ADMIN, **LIVES, "drag": 2}),
    "dragging-cut": Scene(weights={**CLIENTS, **TIME, **ONCE, **LIVES, **CUTS, "drag": 2}),
    "dragging-flushed": Scene(("a", "b"), ("c", "d"), 6, 1, weights={**CLIENTS, **TIME, **ADMIN, **LIVES, "drag": 2}),
    "dragging-trouble": Scene(weights={**CLIENTS, **TIME, **LIVES, **DISK, "drag": 2}),
    "trouble": Scene(weights={**CLIENTS, **TIME, **DISK}),
    "all": Scene(("a", "b"), ("c", "d"), 6, weights={**CLIENTS, **TIME, **ADMIN, **LIVES, **CUTS, **DISK}),
    "all-flushed": Scene(("a", "b"), ("c", "d"), 6, 1, weights={**CLIENTS, **TIME, **ADMIN, **LIVES, **CUTS, **DISK}),
    "each-flushed": Scene(("a", "b"), ("c", "d"), 6, 1, weights={**CLIENTS, **TIME, **ADMIN, **LIVES, **CUTS}),
    "once": Scene(weights={**CLIENTS, **TIME, **ONCE, **LIVES}),
    "once-cut": Scene(weights={**CLIENTS, **TIME, **ONCE, **LIVES, **CUTS}),
    "once-wide": Scene(("a", "b"), ("c", "d"), 6, weights={**CLIENTS, **TIME, **ADMIN, **ONCE, **LIVES, **CUTS}),
    "once-trouble": Scene(("a", "b"), ("c", "d"), 6, weights={**CLIENTS, **TIME, **ADMIN, **ONCE, **LIVES, **DISK}),
    "once-flushed": Scene(("a", "b"), ("c", "d"), 6, 1, weights={**CLIENTS, **TIME, **ONCE, **LIVES, **CUTS}),
    "ephemeral": Scene(
        ("a", "e#ephemeral"), ("c", "d#ephemeral"), 6, weights={**CLIENTS, **TIME, **ADMIN, **LIVES, **CUTS}
    ),
}


RANDOM = int(os.environ.get("SIMULATIONS", "1"))  # random histories of each scene


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scene", SCENES)
def test_a_node_does_what_the_model_says(scene: str, seed: int) -> None:
    simulate(scene, seed)


@pytest.mark.slow  # new ones each time: about one in two hundred still fails, for what the change at hand has not done
@pytest.mark.parametrize("scene", SCENES)
def test_a_node_does_what_the_model_says_whatever_happens(scene: str) -> None:
    for _ in range(RANDOM):
        simulate(scene, SystemRandom().randrange(1 << 32))


def test_a_seed_says_all_that_happens() -> None:
    # given two runs with one seed, then not even the calls of the file system differ
    first, second = (simulate("wide", 7) for _ in range(2))
    assert (first.lives, first.world.clock.now, first.world.logger.lines) == (
        second.lives,
        second.world.clock.now,
        second.world.logger.lines,
    )
    assert first.world.files.calls == second.world.files.calls


def simulate(scene: str, seed: int) -> Simulation:
    simulation = Simulation(seed, SCENES[scene])
    try:
        simulation.run(1000)
    except BaseException as error:
        error.add_note(f"simulate({scene!r}, {seed}) shows it again, in step {simulation.model.step}")
        raise
    return simulation
