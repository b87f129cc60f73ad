"""The jobs of the demo, each a `penstock` command as a user would call it."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

from penstock.cli.demo.nodes import PENSTOCK
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from collections.abc import Sequence


class JobFailed(PenstockError):
    """A command ended with an error."""


def run(*words: str) -> list[dict[str, Any]]:
    """The objects that it printed, one a line."""
    done = subprocess.run([*PENSTOCK, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise JobFailed(f"penstock {words[0]}: {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def rows(found: Sequence[dict[str, Any]]) -> int:
    """How many a job wrote in the end."""
    return sum(each["rows"] for each in found if each.get("ended"))
