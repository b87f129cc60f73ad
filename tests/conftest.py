"""What holds for every test: which build runs, and how hard hypothesis tries.

The tests run the compiled hot modules; with PENSTOCK_PURE=1 they run the same `.py` files plain, with no Cython in
sight, although compiled ones may lie beside them.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

import hot_modules

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

PLAIN = os.environ.get("PENSTOCK_PURE") == "1"

hypothesis.settings.register_profile(
    "ordinary", derandomize=True, deadline=None, max_examples=50, print_blob=True, database=None
)
hypothesis.settings.register_profile(
    "fuzz", deadline=None, max_examples=int(os.environ.get("EXAMPLES", "1000")), print_blob=True
)
hypothesis.settings.load_profile("ordinary")


class PlainFinder:
    """Finds the `.py` of each hot module, where Python's own finder prefers the compiled one."""

    @staticmethod
    def find_spec(name: str, _path: Sequence[str] | None, _target: ModuleType | None = None) -> ModuleSpec | None:
        if name in hot_modules.REASONS:
            return importlib.util.spec_from_file_location(name, hot_modules.source(name))
        return None


if PLAIN:
    sys.meta_path.insert(0, PlainFinder)
    sys.modules["cython"] = None  # type: ignore[assignment]  # importing it fails, as where it is not installed


def pytest_report_header() -> str:
    build = "plain (PENSTOCK_PURE=1)" if PLAIN else "compiled"
    return f"penstock: {build} hot modules: {', '.join(hot_modules.REASONS)}"


def pytest_configure() -> None:
    """Stop before the first test where it would run another code than the header says."""
    wrong = [reason for module in hot_modules.REASONS if (reason := _not_as_asked(module))]
    if wrong:
        wrong.append("`make compiled` compiles them; PENSTOCK_PURE=1 tests the plain code")
        raise pytest.UsageError("\n".join(wrong))


def _not_as_asked(module: str) -> str | None:
    spec = importlib.util.find_spec(module)
    found = Path(spec.origin) if spec and spec.origin else None
    compiled = hot_modules.compiled(module)
    if PLAIN:
        return None if found == hot_modules.source(module) else f"{module}: found {found}, not its .py"
    if not compiled.exists():
        return f"{module}: not compiled"
    if found != compiled:
        return f"{module}: found {found}, not {compiled}"
    return None if hot_modules.is_current(module) else f"{module}: compiled from other sources"
