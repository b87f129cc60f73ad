"""Spark finds format("nsq")."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_no_call_registers_it(spark: SparkSession) -> None:
    # given a session that was told nothing, when the source is asked for
    with pytest.raises(PySparkException) as refused:
        spark.read.format("nsq").load()
    # then it is found
    assert "DATA_SOURCE_NOT_FOUND" not in str(refused.value)


def test_finding_it_imports_nothing_heavy() -> None:
    # given a process that has of Spark what it needs to look for sources
    before = "import sys, pyspark.sql.datasource; before = set(sys.modules)"
    looks = f"{before}; import pyspark_nsq; print(*(set(sys.modules) - before))"
    found = subprocess.run([sys.executable, "-c", looks], check=True, capture_output=True, text=True).stdout.split()
    # then nothing but our own small modules is imported
    assert [name for name in found if not name.startswith(("pyspark_nsq", "penstock"))] == []
    assert len(found) < 10
