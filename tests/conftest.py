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
    from collections.abc import Callable, Sequence
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
    wrong = [] if PLAIN else _problems(_stale)
    if wrong := wrong or _problems(_elsewhere):
        wrong.append("`make compiled` compiles them; PENSTOCK_PURE=1 tests the plain code")
        raise pytest.UsageError("\n".join(wrong))


def _problems(look: Callable[[str], str | None]) -> list[str]:
    return [f"{module}: {problem}" for module in hot_modules.REASONS if (problem := look(module))]


def _stale(module: str) -> str | None:
    if not hot_modules.compiled(module).exists():
        return "not compiled"
    return None if hot_modules.is_current(module) else "compiled from other sources"


def _elsewhere(module: str) -> str | None:
    """Looking for a module imports the packages around it, and those may import what is stale: so this comes second."""
    spec = importlib.util.find_spec(module)
    found = Path(spec.origin) if spec and spec.origin else None
    expected = hot_modules.source(module) if PLAIN else hot_modules.compiled(module)
    return None if found == expected else f"found {found}, not {expected}"
