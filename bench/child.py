"""Running something in a process of its own, whose memory nobody else has used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_MAIN = """
import importlib, json, sys
module, function, arguments = json.loads(sys.argv[1])
print(json.dumps(getattr(importlib.import_module(module), function)(*arguments)))
"""


def in_a_child(function: Callable[..., dict[str, float]], *arguments: str | int) -> dict[str, float]:
    """What the function of a module gives, called there; its arguments and its result go through JSON."""
    call = json.dumps([function.__module__, function.__name__, arguments])
    ended = subprocess.run(
        [sys.executable, "-c", _MAIN, call], cwd=Path(__file__).parents[1], check=True, stdout=subprocess.PIPE
    )
    result: dict[str, float] = json.loads(ended.stdout)
    return result


def resident() -> int:
    """Bytes of memory that this process has now, without the page cache."""
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


def peak() -> int:
    """And the most it ever had."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10
