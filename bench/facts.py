"""What a figure depends on: the machine, the versions, the build, the commit. Names no host and no path."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import penstock
from penstock.protocol import batch


def facts(directory: str) -> dict[str, str | int]:
    """Of this machine, and of the file system that `directory` is on."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": _commit(),
        "penstock": penstock.__version__,
        "build": "compiled" if batch.__file__.endswith(".so") else "plain",
        "cpu": _field("/proc/cpuinfo", "model name") or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory": _field("/proc/meminfo", "MemTotal"),
        "kernel": f"{platform.system()} {platform.release()}",
        "file system": _file_system(directory),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "zlib-ng": version("zlib-ng"),
    }


def _commit() -> str:
    """The commit that the sources are of, with a + where they were changed since."""
    here = Path(__file__).parent
    try:
        commit = _git(here, "rev-parse", "--short", "HEAD")
        return commit + "+" * bool(_git(here, "status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(directory: Path, *arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=directory, check=True, capture_output=True, text=True).stdout.strip()


def _field(path: str, name: str) -> str:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")


def _file_system(directory: str) -> str:
    """Its kind, by the longest mount point that the directory lies below."""
    try:
        mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        return ""
    path = os.path.realpath(directory) + "/"
    return max((mount for mount in mounts if path.startswith(mount[0].rstrip("/") + "/")), key=lambda m: len(m[0]))[1]
