from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import hot_modules


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A copy of what a clean clone has of the package."""
    copy = tmp_path / "penstock"
    copy.mkdir()
    for path in hot_modules.ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, copy)
    not_committed = shutil.ignore_patterns("*.so", "*.egg-info", "__pycache__")
    shutil.copytree(hot_modules.ROOT / "src", copy / "src", ignore=not_committed)
    return copy
