"""Every command that works on data paths, and each of its flags, stands in the docs."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

import pytest

from penstock.cli.main import COMMANDS

DOCS = Path(__file__).parents[3] / "docs"
TEXT = "".join(page.read_text() for page in (DOCS / "log-tools.md", DOCS / "migrating.md"))
ON_DATA_PATHS = [name for name in COMMANDS if name in ("import", "export") or name.startswith("log ")]


@pytest.mark.parametrize("name", ON_DATA_PATHS)
def test_a_command_and_its_flags_are_in_the_docs(name: str) -> None:
    parser = argparse.ArgumentParser(add_help=False)
    import_module(COMMANDS[name].module).add_arguments(parser)
    flags = [option for action in parser._actions for option in action.option_strings]
    assert f"penstock {name}" in TEXT
    assert [flag for flag in flags if flag not in TEXT] == []
