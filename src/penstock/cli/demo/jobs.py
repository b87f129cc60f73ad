"""The jobs of the demo, each a `penstock` command as a user would call it."""

from __future__ import annotations

import json
import subprocess
import time
from typing import Any, NamedTuple

from penstock.cli.demo.nodes import PENSTOCK
from penstock.errors import PenstockError


class JobFailed(PenstockError):
    """A command ended with an error."""


class Done(NamedTuple):
    """The objects that it printed, one a line; and how long it took, the start of Spark included."""

    lines: list[dict[str, Any]]
    seconds: float

    def total(self, what: str) -> int:
        """Of all queries of the job, in the end."""
        return sum(each[what] for each in self.lines if each.get("ended"))


def run(*words: str) -> Done:
    began = time.monotonic()
    done = subprocess.run([*PENSTOCK, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise JobFailed(f"penstock {words[0]}: {done.stderr.strip()}")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return Done(lines, time.monotonic() - began)
