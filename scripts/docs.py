"""Writes the pages in docs/ that are made from the code."""

from __future__ import annotations

from pathlib import Path

from penstock.nsqd.options import NSQD
from penstock.nsqlookupd.options import NSQLOOKUPD
from penstock.options.page import markdown
from penstock.spark.page import markdown as spark_options

DOCS = Path(__file__).resolve().parents[1] / "docs"

for program in (NSQD, NSQLOOKUPD):
    (DOCS / f"{program.name}-flags.md").write_text(markdown(program), encoding="utf-8")
(DOCS / "spark-options.md").write_text(spark_options(), encoding="utf-8")
