"""Files that change or go behind the node's back, while it does not run."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tests.torture.arena import penstock
from tests.torture.nemeses.base import Nemesis

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from tests.torture.arena import Arena

KINDS = {
    "segment": "topics/*/[0-9]*.log",
    "index": "topics/*/[0-9]*.index",
    "timetable": "topics/*/timetable/*.log",
    "journal": "journal/*.log",
    "topic.json": "topics/*/topic.json",
    "node.json": "node.json",
    "nsqd.dat": "nsqd.dat",
}
# Behind a kill, what is hurt at the end of what was written last looks like a write that was cut short; and a hole in
# what the journal was told since its last compaction like one that a power cut left: not promised.
GROWING = ("segment", "timetable")
COSTS = {
    "segment": "the messages that it hits, in a damaged range of the log, told by a log line",
    "index": "nothing: it is made anew",
    "timetable": "the deferred messages that it hits, told by a log line",
    "journal": "what consumers did comes again from where the channels last stood; told by a log line",
    "topic.json": "nothing: what it said follows from the rest",
    "node.json": "nothing, once `penstock log repair` has made it anew",
    "nsqd.dat": "nothing: the journal knows better",
}


class _Harm(Nemesis):
    disks = ("folder",)
    kind: ClassVar[str]

    def strike(self, arena: Arena, random: Random) -> None:
        if self.kind == "journal" and not _compacted(self._files(arena)):
            with arena.down():
                pass  # behind a kill it is made anew
            arena.load.pause(4 * arena.plan.sync_timeout)
        how = random.choice(("kill", "stop"))
        with arena.down(how):
            found = self._files(arena)
            if how == "kill" and self.kind in GROWING:
                found = found[:-1]
            if not found or (self.kind == "journal" and not _compacted(found)):
                return
            path = random.choice(found)
            arena.harmed(self.kind, f"{self.name} {path.relative_to(arena.folder)}: {self.hurt(path, random)}")
            if self.kind == "node.json":
                mended = penstock("log", "repair", str(arena.folder))
                if mended.returncode:
                    arena.wrong(f"repair: {mended.stdout}{mended.stderr}")

    def _files(self, arena: Arena) -> list[Path]:
        return sorted(path for path in arena.folder.glob(KINDS[self.kind]) if path.stat().st_size)

    def hurt(self, path: Path, random: Random) -> str:
        raise NotImplementedError


def _compacted(files: list[Path]) -> bool:
    """Whether the journal was made anew, and the files before are gone."""
    return len(files) == 1 and int(files[0].stem) > 0


class _Flip(_Harm):
    """One bit, or three, of a file."""

    def hurt(self, path: Path, random: Random) -> str:
        data = bytearray(path.read_bytes())
        places = [random.randrange(len(data)) for _ in range(random.choice((1, 1, 3)))]
        for place in places:
            data[place] ^= 1 << random.randrange(8)
        path.write_bytes(data)
        return f"bits at {places} of {len(data)}"


class _Missing(_Harm):
    """A file is gone."""

    def hurt(self, path: Path, random: Random) -> str:
        size = path.stat().st_size
        path.unlink()
        return f"{size} bytes gone"


def _of(base: type[_Harm], word: str, kind: str) -> type[Nemesis]:
    name, told = f"{word}-{kind}", f"{base.__doc__} Here: {KINDS[kind]}."
    return type(name, (base,), {"name": name, "kind": kind, "costs": COSTS[kind], "__doc__": told})


HARMS = [
    *(_of(_Flip, "flip", kind) for kind in KINDS),
    *(_of(_Missing, "missing", kind) for kind in KINDS if kind != "timetable"),  # nothing knows that it was there
]
