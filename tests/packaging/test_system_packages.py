"""scripts/system-packages, on machines made of a folder with a few programs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import hot_modules

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = hot_modules.ROOT / "scripts" / "system-packages"
INSTALLS_A_COMPILER = 'echo "apt-get $*"; echo "#!/bin/sh" > "$(dirname "$0")/cc"; chmod +x "$(dirname "$0")/cc"'


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder of programs, for PATH: no compiler, no apt, and nobody is root."""
    for name in ("cat", "chmod", "dirname", "sed", "sh"):
        (tmp_path / name).symlink_to(shutil.which(name) or name)
    program(tmp_path, "id", "echo 1000")
    return tmp_path


def program(machine: Path, name: str, body: str) -> None:
    path = machine / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def run(machine: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SCRIPT, sys.executable],
        env={"PATH": str(machine), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_nothing_is_done_where_all_is_there(machine: Path) -> None:
    program(machine, "cc", "cat > /dev/null")
    ran = run(machine)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_what_is_missing_is_named_with_the_packages_that_have_it(machine: Path) -> None:
    # given no compiler and no way to install one, when the script runs
    ran = run(machine)
    # then a person reads what to do
    assert ran.returncode == 1
    assert "a C compiler with Python's headers" in ran.stderr
    assert "apt install gcc libc6-dev python3-dev python3-venv" in ran.stderr


def test_root_with_apt_gets_it_installed(machine: Path) -> None:
    # given root, and an apt that can install a compiler
    program(machine, "id", "echo 0")
    program(machine, "apt-get", INSTALLS_A_COMPILER)
    # when the script runs
    ran = run(machine)
    # then it did, and all is there
    assert ran.returncode == 0, ran.stderr
    assert "apt-get install -qq -y --no-install-recommends gcc libc6-dev python3-dev python3-venv" in ran.stdout


def test_an_ordinary_user_with_apt_is_only_told(machine: Path) -> None:
    program(machine, "apt-get", INSTALLS_A_COMPILER)
    ran = run(machine)
    assert (ran.returncode, ran.stdout) == (1, "")


def test_a_plain_build_needs_no_compiler(machine: Path) -> None:
    assert run(machine, PENSTOCK_PURE="1").returncode == 0
