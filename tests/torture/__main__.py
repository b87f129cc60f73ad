"""`make torture`: episodes until the time is over, a live line, and a table of what was done and found."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random, SystemRandom
from typing import TYPE_CHECKING, Final

from tests.torture import episode
from tests.torture.checker import Summary
from tests.torture.nemeses import NEMESES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.torture.episode import Outcome

EPISODE: Final = 60.0  # seconds, about
ROUNDS: Final = 10  # of an episode whose rounds are counted
DISKS: Final = ("folder", "folder", "small", "device")


class Report:
    """What is shown."""

    def __init__(self, seed: int) -> None:
        self.done: Counter[str] = Counter()
        self.total = Summary(*(0 for _ in Summary._fields))
        self.episodes = self.violations = 0
        self._begun = time.monotonic()
        print(f"seed {seed}", flush=True)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._begun

    def live(self, rounds: int) -> None:
        if sys.stdout.isatty():
            faults = sum(self.done.values())
            text = f"\r{self.seconds:.0f} s, episode {self.episodes + 1}, round {rounds + 1}, {faults} faults "
            print(text, end="", flush=True)

    def add(self, outcome: Outcome, what: str) -> None:
        self.episodes += 1
        self.violations += len(outcome.violations)
        self.total = self.total + outcome.summary
        plan, found = outcome.plan, outcome.summary
        how = f"{what} on a {plan.disk}, --sync-every={plan.sync_every} --sync-timeout={plan.sync_timeout}s"
        said = "held" if not outcome.violations else f"{len(outcome.violations)} VIOLATIONS"
        counted = f"{found.published} published, {found.received} received"
        print(f"\repisode {self.episodes}: {how}: {counted}: {said}", flush=True)
        for violation in outcome.violations[:5]:
            print(f"    {violation.what}", flush=True)

    def close(self) -> None:
        print(f"\n{'nemesis':22}{'rounds':>7}   may cost")
        for name, count in sorted(self.done.items()):
            print(f"{name:22}{count:7}   {NEMESES[name].costs}")
        print(f"\n{'seconds':22}{self.seconds:9.0f}")
        for field, value in zip(Summary._fields, self.total, strict=True):
            print(f"{field:22}{value:9}")
        print(f"{'violations':22}{self.violations:9}")


class Torture:
    """One run of `make torture`."""

    def __init__(self, seed: int, keep: Path, program: str) -> None:
        self.random, self.report, self._keep, self._program = Random(seed), Report(seed), keep, program
        self._place = Path(tempfile.mkdtemp(prefix="penstock-torture-"))
        self.disks: Sequence[str] = DISKS
        if why := episode.why_no_small_disk(self._place):
            print(f"SKIPPED: all that needs a small disk: {why}", flush=True)
            self.disks = [disk for disk in DISKS if disk != "small"]

    def possible(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if set(NEMESES[name].disks) & set(self.disks)]

    def episode(self, names: Sequence[str], go_on: Callable[[int], bool], what: str) -> None:
        plan, nemeses = episode.draw(self.random, names, self.disks, self._program)

        def told(rounds: int) -> bool:
            self.report.live(rounds)
            return go_on(rounds)

        folder = self._place / f"{self.report.episodes + 1}"
        outcome = episode.run(folder, plan, nemeses, self.random.getrandbits(32), told, self.report.done)
        self.report.add(outcome, what)
        for rule, count in Counter(violation.rule for violation in outcome.violations).items():
            print(f"    {rule}: {count}", flush=True)
        if outcome.violations:
            self._keep.mkdir(parents=True, exist_ok=True)
            for name in ("history.jsonl", "node.log"):
                shutil.copy(folder / name, self._keep / f"{folder.name}-{name}")
            print(f"    kept in {self._keep}", flush=True)
        shutil.rmtree(folder)

    def mixed(self, names: Sequence[str], seconds: float) -> None:
        """All of them, alone and two at a time."""
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            until = min(end, now + EPISODE)
            self.episode(names, lambda _, until=until: time.monotonic() < until, "mixed")  # type: ignore[misc]

    def each(self, names: Sequence[str], rounds: int) -> None:
        """Each alone, so many rounds."""
        for name in names:
            for begin in range(0, rounds, ROUNDS):
                size = min(ROUNDS, rounds - begin)
                self.episode([name], lambda done, size=size: done < size, name)  # type: ignore[misc]

    def close(self) -> int:
        shutil.rmtree(self._place)
        self.report.close()
        return 1 if self.report.violations else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="of all nemeses mixed")
    parser.add_argument("--rounds", type=int, default=0, help="each nemesis alone, so many rounds, instead")
    parser.add_argument("--seed", type=int, default=SystemRandom().getrandbits(32))
    parser.add_argument("--only", default="", help="names of nemeses, with commas; all where none is named")
    parser.add_argument("--keep", type=Path, help="where histories and logs of episodes that failed are kept")
    parser.add_argument("--nsqd", default="", help="the path of another nsqd: what it keeps under the same rules")
    parser.add_argument("--list", action="store_true", help="the nemeses, what each does and may cost")
    chosen = parser.parse_args()
    if chosen.list:
        for name, nemesis in NEMESES.items():
            print(f"{name:18} {nemesis.__doc__}\n{'':18} costs {nemesis.costs}")
        return 0
    names = [name for name in chosen.only.split(",") if name] or list(NEMESES)
    torture = Torture(chosen.seed, chosen.keep or Path("build") / "torture" / str(chosen.seed), chosen.nsqd)
    if chosen.rounds:
        torture.each(torture.possible(names), chosen.rounds)
    else:
        torture.mixed(torture.possible(names), chosen.minutes * 60)
    return torture.close()


if __name__ == "__main__":
    sys.exit(main())
