from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import pytest

from penstock.cli.jobs import arguments as args
from penstock.errors import BadOption
from penstock.spark.jobs.options import Archive, Sql, Transform

if TYPE_CHECKING:
    from pathlib import Path


def parsed(table: type[Any], *argv: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    args.add_table(parser, table)
    args.add_job_arguments(parser)
    return parser.parse_args(argv)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "jobs.toml"


def test_flags_say_what_a_job_is() -> None:
    # given a call, when it is read
    arguments = parsed(Archive, "--nsqd=a:1,b:2", "--topic=orders,events", "--to=/data", "--rows-per-file=5")
    ((name, (job, also)),) = args.jobs(Archive, arguments).items()
    # then there is one job without a name, which is asked that
    assert name == ""
    assert also == {}
    assert (job.nsqd, job.topic) == (("http://a:1", "http://b:2"), ("orders", "events"))
    assert (job.to, job.rows_per_file, job.format) == ("/data", 5, "parquet")


def test_a_flag_that_names_topics_may_be_given_for_each() -> None:
    arguments = parsed(
        Transform, "--nsqd=a:1", "--topic=a,b", "--schema=a=x INT", "--schema", "y STRING", "--sql=SELECT 1", "--to=/d"
    )
    ((job, _),) = args.jobs(Transform, arguments).values()
    assert job.schema == (("a", "x INT"), ("", "y STRING"))


def test_a_file_holds_several_jobs_and_what_they_share(file: Path) -> None:
    # given a file with two jobs
    file.write_text(
        'nsqd = ["a:1", "b:2"]\nto = "/data"\n'
        '[orders]\ntopic = "orders"\nevery = "30s"\n'
        '[rest]\ntopic_pattern = "x.*"\nto = "/else"\nrows_per_file = 7\nfail_on_data_loss = false\n'
    )
    # when a call names it, with a flag
    found = args.jobs(Archive, parsed(Archive, f"--config={file}", "--format=json"))
    # then each is what the flag, its own table and the top of the file say, in this order
    orders, also = found["orders"]
    rest, _ = found["rest"]
    assert (orders.topic, orders.to, orders.format, also["every"]) == (("orders",), "/data", "json", "30s")
    assert (rest.topic_pattern, rest.to, rest.rows_per_file, rest.fail_on_data_loss) == ("x.*", "/else", 7, False)
    assert orders.nsqd == rest.nsqd == ("http://a:1", "http://b:2")


def test_a_query_takes_its_options_from_a_file_too(file: Path) -> None:
    # given a file with where the nodes and an archive are
    file.write_text('lookupd = "a:1"\narchive = ["kept=/data/orders", "more=/data/more"]\nlimit = 5\n')
    # when a call names it, with a flag
    options = args.only(Sql, parsed(Sql, f"--config={file}", "--limit=7"))
    # then the flag counts more
    assert (options.lookupd, options.limit) == (("http://a:1",), 7)
    assert options.archive == (("kept", "/data/orders"), ("more", "/data/more"))
    # and what is none is refused
    file.write_text("[orders]\nlimit = 5\n")
    with pytest.raises(BadOption, match="orders is unknown"):
        args.only(Sql, parsed(Sql, f"--config={file}"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param("[a]\ntopik = 'x'\n", "topik is unknown; did you mean topic?", id="unknown"),
        pytest.param("[a]\nnsqd='a:1'\ntopic='x'\nto='/d'\nrows_per_file='many'\n", "rows_per_file", id="no-number"),
        pytest.param("[a]\nnsqd='nowhere'\n", "nsqd: 'nowhere' is not host:port", id="no-address"),
        pytest.param("[a\n", "jobs.toml", id="no-toml"),
    ],
)
def test_what_a_file_says_wrongly_is_refused_by_name(file: Path, text: str, sentence: str) -> None:
    file.write_text(text)
    with pytest.raises(BadOption, match=sentence.replace("?", r"\?")):
        args.jobs(Archive, parsed(Archive, f"--config={file}"))


@pytest.mark.parametrize(
    ("table", "argv", "sentence"),
    [
        pytest.param(Archive, ["--to=/d", "--topic=x"], "--lookupd or --nsqd", id="no-nodes"),
        pytest.param(Archive, ["--nsqd=a:1", "--to=/d"], "--topic or --topic-pattern", id="no-topic"),
        pytest.param(Archive, ["--nsqd=a:1", "--topic=x"], "--to: it has to be given", id="nowhere-to"),
        pytest.param(Archive, ["--nsqd=a:1", "--topic=x", "--to=/d", "--format=csv"], "--format", id="no-format"),
        pytest.param(Transform, ["--nsqd=a:1", "--topic=x", "--to=/d"], "--sql or --function", id="nothing-to-do"),
        pytest.param(
            Transform, ["--nsqd=a:1", "--topic=x", "--sql=S", "--to=/d", "--to-topic=y"], "--to-topic or --to", id="two"
        ),
        pytest.param(
            Transform, ["--nsqd=a:1", "--topic=x", "--sql=S", "--to=/d", "--mode=update"], "updated", id="files"
        ),
        pytest.param(Transform, ["--nsqd=a:1", "--topic=x", "--function=f", "--to=/d"], "module:name", id="function"),
        pytest.param(Sql, ["--archive=/d"], "NAME=PATH", id="archive-without-name"),
        pytest.param(Sql, [], "--lookupd or --nsqd", id="nothing-to-ask"),
    ],
)
def test_a_call_that_cannot_be_is_refused_in_a_sentence(table: type[Any], argv: list[str], sentence: str) -> None:
    with pytest.raises(BadOption, match=sentence):
        args.jobs(table, parsed(table, *argv))


def test_settings_of_spark_are_names_with_values() -> None:
    assert args.settings(["spark.a=1", "spark.b=x=y"]) == {"spark.a": "1", "spark.b": "x=y"}
    with pytest.raises(BadOption, match="NAME=VALUE"):
        args.settings(["spark.a"])
