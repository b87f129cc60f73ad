from __future__ import annotations

import io
import json

import pytest

from penstock.cli.jobs.showing import AsJson, Live, Plain, Show, passing, show_for
from penstock.spark.jobs.watching import Standing


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def standing(
    rows: int, batches: int = 1, name: str = "orders", lag: int | None = 5, files: int | None = None
) -> Standing:
    return Standing(name, rows, 1234.5, lag, batches, ended=False, files=files)


def test_on_a_terminal_each_job_has_one_line_that_is_written_over() -> None:
    # given two jobs that are shown, then how they go on
    out = io.StringIO()
    show = Live(out)
    show.running([standing(1000, files=3), standing(0, name="rest", lag=None)])
    before = out.getvalue()
    show.running([standing(2000), standing(7, name="rest", lag=None)])
    # then the cursor goes up two lines first
    assert "orders: 1,000 rows, 1,234 rows/s, lag 5, 3 files\n" in before
    assert "rest:   0 rows, 1,234 rows/s\n" in before
    assert out.getvalue().removeprefix(before).startswith("\x1b[2A\r\x1b[Korders: 2,000 rows")


def test_what_happens_is_said_above_the_lines_which_stay_the_last() -> None:
    # given a job that is shown, when something is noted
    out = io.StringIO()
    show = Live(out)
    show.running([standing(1000)])
    before = out.getvalue()
    show.note("stopping")
    # then it takes the job's place, which is written below it, and over again from there
    noted = out.getvalue().removeprefix(before)
    assert noted.startswith("\x1b[1A\r\x1b[Kstopping\n\r\x1b[Korders: 1,000 rows")
    show.running([standing(2000)])
    assert out.getvalue().removeprefix(before + noted).startswith("\x1b[1A\r\x1b[Korders: 2,000 rows")


def test_a_line_is_never_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    out = io.StringIO()
    Live(out).running([standing(1000, name="a-name-as-long-as-that")])
    assert out.getvalue() == "\r\x1b[Ka-name-as-long-as-t\n"


@pytest.mark.parametrize(
    ("stream", "shown"),
    [
        pytest.param(Terminal, "\r\x1b[Kstarting\r\x1b[K", id="terminal"),
        pytest.param(io.StringIO, "", id="file"),
    ],
)
def test_what_is_done_just_now_stands_on_a_terminal_until_it_is_over(stream: type[io.StringIO], shown: str) -> None:
    out = stream()
    passing("starting", out)
    passing("", out)
    assert out.getvalue() == shown


def test_elsewhere_a_line_comes_when_there_is_something_new_and_not_often() -> None:
    # given a clock
    now = 0.0
    out = io.StringIO()
    show = Plain(out, lambda: now)
    # when a job is looked at each second
    for rows in (0, 10, 20, 30):
        show.running([standing(rows, batches=rows // 10)])
        now += 1
    now += 10
    show.running([standing(40, batches=4)])
    show.running([standing(40, batches=4)])
    show.ended([standing(40, batches=4)])
    # then few lines are written, the last one in any case
    assert [line.split(",")[0] for line in out.getvalue().splitlines()] == [
        "orders: 10 rows",
        "orders: 40 rows",
        "orders: 40 rows",
    ]


def test_for_programs_each_batch_is_an_object() -> None:
    out = io.StringIO()
    show = AsJson(out)
    for batches in (0, 1, 1, 2):
        show.running([standing(batches * 10, batches)])
    show.note("stopping")
    show.ended([standing(20, 2)])
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [each.get("rows") for each in found] == [10, 20, None, 20]
    assert found[0] == {"job": "orders", "rows": 10, "rate": 1234, "lag": 5}
    assert found[-1]["ended"] is True


@pytest.mark.parametrize(
    ("as_json", "out", "kind"),
    [
        pytest.param(False, Terminal(), Live, id="terminal"),
        pytest.param(False, io.StringIO(), Plain, id="file"),
        pytest.param(True, Terminal(), AsJson, id="json"),
    ],
)
def test_what_is_shown_depends_on_who_reads(as_json: bool, out: io.StringIO, kind: type[Show]) -> None:
    assert isinstance(show_for(as_json=as_json, stream=out), kind)
