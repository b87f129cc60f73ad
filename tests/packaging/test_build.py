"""Wheels built from a copy of the sources, with the tools of this environment: no network."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from zipfile import ZipFile

import pytest

import hot_modules

COMPILED = {hot_modules.compiled(module).relative_to(hot_modules.ROOT / "src") for module in hot_modules.REASONS}
BUILD_SDIST = "import setuptools.build_meta as backend; print(backend.build_sdist('dist'))"


@pytest.fixture
def no_compiler(tmp_path: Path) -> dict[str, str]:
    """An environment in which no program is found."""
    empty = tmp_path / "no-programs"
    empty.mkdir()
    return {"PATH": str(empty)}


def build(sources: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """pip makes a wheel of `sources`, a folder or an archive, into `wheels` beside it; unoptimized, for speed."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("PENSTOCK_PURE", "CC")}
    return subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-w", "wheels", str(sources)],
        env={**inherited, "CFLAGS": "-O0", **environment},
        cwd=sources.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def wheels(sources: Path) -> list[Path]:
    return list(sources.parent.glob("wheels/*.whl"))


def wheel(sources: Path) -> ZipFile:
    [path] = wheels(sources)
    return ZipFile(path)


def expected_files(sources: Path) -> set[Path]:
    """What a wheel should hold of the packages: the sources, and that they are typed."""
    packages = sources / "src"
    return {path.relative_to(packages) for name in ("*.py", "py.typed") for path in packages.rglob(name)}


def files(wheel: ZipFile) -> set[Path]:
    return {path for path in map(Path, wheel.namelist()) if not path.parts[0].endswith(".dist-info")}


@pytest.mark.slow
def test_a_wheel_holds_the_package_and_its_compiled_modules_and_nothing_else(sources: Path) -> None:
    # given sources beside which earlier builds left their things
    expected = expected_files(sources)
    platform = f"build/lib.{sys.platform}-{os.uname().machine}-cpython-{sys.version_info.major}{sys.version_info.minor}"
    for leftover in (
        "src/penstock/protocol/batch.c",
        f"src/penstock/log/old{EXTENSION_SUFFIXES[0]}",
        "build/lib/penstock/old.py",
        f"{platform}/penstock/old.py",
    ):
        path = sources / leftover
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    # when a wheel is built
    done = build(sources)
    # then it holds none of them, and each hot module as it is now
    assert done.returncode == 0, done.stdout
    assert files(wheel(sources)) == expected | COMPILED


@pytest.mark.slow
def test_a_wheel_can_be_built_from_the_source_archive(sources: Path) -> None:
    # given the archive that would be published
    subprocess.run([sys.executable, "-c", BUILD_SDIST], cwd=sources, check=True, capture_output=True)
    [archive] = (sources / "dist").glob("*.tar.gz")
    with tarfile.open(archive) as archived:
        assert [name for name in archived.getnames() if name.endswith((".c", ".so"))] == []
    # when a wheel is built from it
    done = build(archive.rename(sources.parent / archive.name))
    # then it is the same as from the sources
    assert done.returncode == 0, done.stdout
    assert files(wheel(sources)) == expected_files(sources) | COMPILED


def test_without_a_compiler_the_build_fails_and_says_what_to_do(sources: Path, no_compiler: dict[str, str]) -> None:
    # given a machine with no compiler, when a wheel is built
    done = build(sources, **no_compiler)
    # then there is none, and one sentence has what to install and how to do without
    assert done.returncode != 0
    [sentence] = [line.strip() for line in done.stdout.splitlines() if "PENSTOCK_PURE=1" in line]
    assert sentence.startswith("error: Penstock compiles its hot modules, but there is no C compiler (")
    assert "install gcc and python3-dev" in sentence
    assert not wheels(sources)


@pytest.mark.slow
def test_a_compiler_that_fails_fails_the_build(sources: Path) -> None:
    done = build(sources, CC="false")
    assert done.returncode != 0
    assert "returned non-zero exit status 1" in done.stdout
    assert not wheels(sources)


@pytest.mark.slow
def test_code_that_does_not_compile_fails_the_build(sources: Path) -> None:
    # given a hot module that plain Python takes and Cython does not
    hot = sources / "src" / hot_modules.source("penstock.protocol.batch").relative_to(hot_modules.ROOT / "src")
    hot.write_text("import cython\n\n\ndef f():\n    number: cython.int = 1.5\n")
    # when a wheel is built
    done = build(sources)
    # then there is none
    assert done.returncode != 0
    assert "batch.py:5" in done.stdout


def test_a_plain_wheel_needs_neither_a_compiler_nor_cython(
    sources: Path, no_compiler: dict[str, str], tmp_path: Path
) -> None:
    # given a wheel built plain on purpose, where there is no compiler
    done = build(sources, PENSTOCK_PURE="1", **no_compiler)
    assert done.returncode == 0, done.stdout
    plain = wheel(sources)
    # then it has no compiled module, and fits every Python
    assert files(plain) == expected_files(sources)
    assert plain.filename is not None
    assert plain.filename.endswith("-py3-none-any.whl")
    # and it runs where there is no Cython
    plain.extractall(tmp_path / "installed")
    script = (
        "import sys; sys.modules['cython'] = None\n"
        + "".join(f"import {module}\n" for module in hot_modules.REASONS)
        + f"print({', '.join(f'{module}.__file__' for module in hot_modules.REASONS)})\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(tmp_path / "installed")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.split() == [
        str(tmp_path / "installed" / hot_modules.source(module).relative_to(hot_modules.ROOT / "src"))
        for module in hot_modules.REASONS
    ]


def test_a_plain_install_in_place_is_not_shadowed_by_what_was_compiled_before(sources: Path, tmp_path: Path) -> None:
    # given sources that were compiled in place
    in_place = [sources / "src" / path for path in COMPILED]
    for path in in_place:
        path.touch()
    # when they are installed in place, plain
    options = ["-q", "--no-build-isolation", "--no-deps", "--target", str(tmp_path / "installed")]
    environment = {**os.environ, "PENSTOCK_PURE": "1"}
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, "-e", "."], cwd=sources, env=environment, check=True
    )
    # then no compiled module is left
    assert [path for path in in_place if path.exists()] == []
