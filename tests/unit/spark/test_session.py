from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from penstock.spark import session

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _unconfigured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in session.CONFIGURED:
        monkeypatch.delenv(name, raising=False)


def test_workers_do_not_import_spark_from_the_zip_which_has_no_bytecode(tmp_path: Path) -> None:
    # given what Spark puts in front of a worker's path: a zip of itself; and what the user has there
    spark = tmp_path / "lib" / "pyspark.zip"
    spark.parent.mkdir()
    with zipfile.ZipFile(spark, "w") as file:
        file.writestr("pyspark.py", "")
    mine = tmp_path / "with spaces and *"
    mine.mkdir()
    path = f"{spark}:{mine}:{spark}:/other"
    # when a worker is run
    asks = "import json, os, sys; print(json.dumps([os.environ['PYTHONPATH'], sys.argv[1:], sys.executable]))"
    command = [session._python(tmp_path / "state", "local[*]"), "-c", asks, "two words", "x"]
    found = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=True, capture_output=True, text=True)
    # then the zip is gone, and all else is as it was
    assert json.loads(found.stdout) == [f"{mine}:/other", ["two words", "x"], sys.executable]


@pytest.mark.parametrize(
    ("master", "variable"),
    [
        pytest.param("spark://a:7077", "", id="elsewhere"),
        pytest.param("local[2]", "SPARK_HOME", id="a-spark-of-the-users"),
    ],
)
def test_elsewhere_workers_are_run_by_python_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, master: str, variable: str
) -> None:
    if variable:
        monkeypatch.setenv(variable, "/some/where")
    assert session._python(tmp_path, master) == sys.executable
    assert list(tmp_path.iterdir()) == []


def test_what_is_started_quietly_says_nothing_and_holds_no_output(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    # given a program that is started where it is quiet, when it speaks
    with session._quiet(tmp_path / "log"):
        subprocess.run("echo noise; echo worse >&2", shell=True, check=True)
    print("ours", flush=True)
    # then that is in the file, and what we say is seen
    assert (tmp_path / "log").read_text() == "noise\nworse\n"
    assert capfd.readouterr() == ("ours\n", "")
