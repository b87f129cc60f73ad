"""What is refused before Spark is started."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import pytest

from penstock.cli.jobs import arguments as args
from penstock.cli.jobs import running
from penstock.cli.jobs.holding import held
from penstock.errors import BadOption, NodeFailed
from penstock.spark.jobs.options import Archive, Sql
from tests.unit.spark.web import Scripted, answer

if TYPE_CHECKING:
    from pathlib import Path

NODES = "--nsqd=a:1"


@pytest.fixture(autouse=True)
def _state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def jobs(*argv: str) -> list[Any]:
    pytest.importorskip("pyspark", reason="pyspark (extra `spark`) is not installed")
    parser = argparse.ArgumentParser()
    args.add_table(parser, Archive)
    args.add_job_arguments(parser)
    return running._jobs("archive", Archive, parser.parse_args(argv))


def test_a_job_is_named_by_what_it_reads_and_writes(tmp_path: Path) -> None:
    # given the same call twice, and one that writes elsewhere
    (first,), (again,), (other,) = (jobs(NODES, "--topic=orders,sales", f"--to=/{to}") for to in "aab")
    # then it is the same job where it is the same call, and a person knows which
    assert first.name == again.name != other.name
    assert first.name.startswith("archive-orders-sales-")
    assert first.checkpoint == str(tmp_path / "state" / "penstock" / "archive" / first.name)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param('[a]\nto="/d"\n[b]\nto="/d"\n', "two jobs write to the folder /d", id="folder"),
        pytest.param(
            'checkpoint="/c"\n[a]\nto="/d"\n[b]\nto="/e"\n', "two jobs have the checkpoint /c", id="checkpoint"
        ),
    ],
)
def test_two_jobs_of_a_file_do_not_share_a_place(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "jobs.toml").write_text(f'nsqd="a:1"\ntopic="x"\n{text}')
    with pytest.raises(BadOption, match=sentence):
        jobs(f"--config={tmp_path / 'jobs.toml'}")


@pytest.mark.parametrize(
    ("daemon", "status", "sentence"),
    [
        pytest.param("nsqd", 200, "", id="nsqd"),
        pytest.param("nsqd", 500, "", id="an-nsqd-that-is-not-well"),
        pytest.param("nsqd", 404, "is no nsqd; --nsqd wants the HTTP address of one, as 127.0.0.1:4151", id="no-nsqd"),
        pytest.param("lookupd", 200, "", id="nsqlookupd"),
        pytest.param("lookupd", 404, "is no nsqlookupd; --lookupd wants the HTTP address", id="nsqd-instead"),
    ],
)
def test_somebody_has_to_answer_at_each_address(daemon: str, status: int, sentence: str) -> None:
    with Scripted([answer(b"{}", status)]) as web:
        options = Sql(nsqd=(web.url,)) if daemon == "nsqd" else Sql(lookupd=(web.url,))
        if not sentence:
            running.reach(options)
            return
        with pytest.raises(NodeFailed, match=sentence):
            running.reach(options)


def test_the_port_of_nsqs_own_protocol_is_told_from_that_of_http() -> None:
    with (
        Scripted([b"\0\0\0\x12\0\0\0\1E_BAD_PROTOCOL"]) as nsqd,
        pytest.raises(NodeFailed, match=r"cannot be reached: .*; --nsqd wants the HTTP address"),
    ):
        running.reach(Sql(nsqd=(nsqd.url,)))


def test_a_checkpoint_is_held_by_one_call_at_a_time(tmp_path: Path) -> None:
    place = str(tmp_path / "checkpoint")
    with held("orders", place), pytest.raises(BadOption, match="orders runs already"), held("orders", place):
        pass
    assert not (tmp_path / "checkpoint").exists()  # nothing was noted down there
    with held("orders", place):  # it is free again
        (tmp_path / "checkpoint" / "offsets").write_text("5")
    assert (tmp_path / "checkpoint" / "offsets").read_text() == "5"


def test_a_checkpoint_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(BadOption, match=r"--checkpoint: .*file/x: Not a directory"),
        held("orders", f"{tmp_path}/file/x"),
    ):
        pass


def test_a_checkpoint_on_another_file_system_is_left_to_spark() -> None:
    with held("orders", "hdfs://nowhere/x"):
        pass
