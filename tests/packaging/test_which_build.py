"""That the tests run the build they say, and stop where they cannot."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import hot_modules

if TYPE_CHECKING:
    from pathlib import Path

BATCH = "penstock.protocol.batch"


@pytest.fixture
def suite(sources: Path) -> Path:
    """A copy of the sources with this suite's conftest, and one test that prints where the batch codec came from."""
    (sources / "tests").mkdir()
    shutil.copy(hot_modules.ROOT / "tests" / "conftest.py", sources / "tests")
    (sources / "tests" / "test_it.py").write_text(
        f"import {BATCH} as it\ndef test_it():\n    print('loaded', it.__file__, it.cython.__name__)\n"
    )
    return sources


def compiled_from_something(suite: Path) -> Path:
    """A compiled module beside its source, of which nobody knows what it was made from."""
    path: Path = suite / hot_modules.compiled(BATCH).relative_to(hot_modules.ROOT)
    path.write_bytes(b"machine code")
    return path


def run(suite: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if name != "PENSTOCK_PURE"}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider"],
        env={**inherited, "PYTHONPATH": str(suite / "src"), **environment},
        cwd=suite,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_run_stops_where_a_hot_module_is_not_compiled(suite: Path) -> None:
    # given a hot module with no compiled one, when the tests are run
    ran = run(suite)
    # then none runs, and one reads what to do
    assert ran.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"{BATCH}: not compiled" in ran.stderr
    assert "make compiled" in ran.stderr


def test_the_run_stops_where_a_hot_module_is_compiled_from_other_sources(suite: Path) -> None:
    compiled_from_something(suite)
    ran = run(suite)
    assert ran.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"{BATCH}: compiled from other sources" in ran.stderr


def test_the_plain_code_runs_although_a_compiled_module_lies_beside_it(suite: Path) -> None:
    # given a compiled module that would not even load
    compiled_from_something(suite)
    # when the tests are run plain
    ran = run(suite, PENSTOCK_PURE="1")
    # then they have the .py, with our stand-in for Cython, and the header says so
    assert ran.returncode == 0, ran.stdout
    assert "plain (PENSTOCK_PURE=1) hot modules" in ran.stdout
    assert f"loaded {suite / hot_modules.source(BATCH).relative_to(hot_modules.ROOT)} penstock.plain" in ran.stdout


SESSION = "penstock.nsqd.session"


@pytest.mark.parametrize(
    ("module", "changed", "stale"),
    [
        (BATCH, "src/penstock/protocol/batch.py", True),
        (BATCH, "setup.py", True),
        (BATCH, "src/penstock/nsqd/session.pxd", False),
        (SESSION, "src/penstock/nsqd/session.pxd", True),
        (SESSION, "src/penstock/broker/unfinished.pxd", True),  # of what Channel has, which Session has
        (SESSION, "src/penstock/log/chain.pxd", False),
    ],
)
def test_a_compiled_module_is_stale_when_what_it_is_made_from_changes(
    sources: Path, module: str, changed: str, *, stale: bool
) -> None:
    # given a module that carries the fingerprint of its sources
    of_the_copy = runpy.run_path(str(sources / "hot_modules.py"))
    of_the_copy["compiled"](module).write_text(f"machine code {of_the_copy['fingerprint'](module)} machine code")
    assert of_the_copy["is_current"](module)
    # when something changes
    with (sources / changed).open("a") as file:
        file.write("# changed")
    # then it is stale where it is made from that, by way of its types too
    assert of_the_copy["is_current"](module) is not stale
