"""An episode: a plan and nemeses drawn by a seed, rounds of them, the end, and what the checker says of it."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.torture.arena import Arena, Over, Plan
from tests.torture.checker import Summary, Violation, check, summary
from tests.torture.nemeses import NEMESES

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tests.torture.nemeses import Nemesis

SMALL: Final = 48 << 20


class Outcome(NamedTuple):
    plan: Plan
    violations: list[Violation]
    summary: Summary


def draw(random: Random, names: Sequence[str], allowed: Sequence[str], program: str = "") -> tuple[Plan, list[Nemesis]]:
    """A plan, and those of the nemeses that its disk allows; of another nsqd where there is a program."""
    disks = [disk for disk in allowed if any(disk in NEMESES[name].disks for name in names)]
    plan = Plan(
        disk=random.choice(disks),
        sync_every=random.choice((1, 50, 2500)),
        sync_timeout=random.choice((0.1, 0.5, 2.0)),
        max_bytes_per_file=random.choice((30_000, 200_000, 10_000_000)),
        lookupd="lookupd-gone" in names,
        program=program,
    )
    return plan, [NEMESES[name] for name in names if plan.disk in NEMESES[name].disks]


def run(
    place: Path,
    plan: Plan,
    nemeses: Sequence[Nemesis],
    seed: int,
    go_on: Callable[[int], bool],
    done: Counter[str],
) -> Outcome:
    """Rounds as long as `go_on` says, each by one nemesis or by two together; `done` counts them by name."""
    random = Random(seed)
    place.mkdir(parents=True, exist_ok=True)
    with _disk(place, plan):
        arena = Arena(place, plan, random)
        try:
            arena.load.pause(0.3)
            rounds = 0
            while go_on(rounds):
                _round(arena, random.choice(nemeses), nemeses, random, done)
                rounds += 1
            arena.end()
        except Over:
            pass  # it stands in the history
        finally:
            arena.close()
        arena.history.save(place / "history.jsonl")
        (place / "node.log").write_text("".join(arena.nsqd.log))
        return Outcome(plan, check(arena.history), summary(arena.history))


def _round(arena: Arena, first: Nemesis, nemeses: Sequence[Nemesis], random: Random, done: Counter[str]) -> None:
    others = [nemesis for nemesis in nemeses if nemesis is not first and not nemesis.lasts]
    done[first.name] += 1
    with first.harm(arena, random):
        arena.load.pause(random.random() * 0.8)
        if first.lasts and others and random.random() < 0.5:
            second = random.choice(others)
            done[second.name] += 1
            with second.harm(arena, random):
                arena.load.pause(random.random() * 0.3)
    arena.load.pause(random.random() * 0.5)
    if random.random() < 0.3:
        arena.look()


@contextmanager
def _disk(place: Path, plan: Plan) -> Iterator[None]:
    if plan.disk != "small":
        yield
        return
    data = place / "data"
    data.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL}", "tmpfs", str(data)], check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(data)], check=True, capture_output=True)


def why_no_small_disk(place: Path) -> str:
    """Empty where one may be mounted."""
    if os.geteuid():
        return "only root may mount a tmpfs"
    try:
        with _disk(place, replace(Plan(), disk="small")):
            return ""
    except (OSError, subprocess.CalledProcessError) as error:
        return f"mounting a tmpfs failed: {error}"
