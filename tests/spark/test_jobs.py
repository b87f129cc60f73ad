"""The jobs, in the session of the tests: each from topics that a real nsqd has."""

from __future__ import annotations

import json
from shutil import rmtree
from typing import TYPE_CHECKING, Any

import pytest

from penstock.errors import BadOption
from penstock.spark.jobs import archive, replay, transform
from penstock.spark.jobs.job import Job
from penstock.spark.jobs.options import Archive, Replay, Sql, Transform
from penstock.spark.jobs.sql import rows_of
from penstock.spark.jobs.watching import Standing, Watch
from tests.spark.test_source import Node

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

SCHEMA = "user STRING, amount BIGINT"
COMPACTING = "spark.sql.streaming.fileSink.log.compactInterval"
PEEK = "/channel/peek?topic=slow&channel=c&state=deferred&n=100"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    found = Node(tmp_path_factory.mktemp("nsqd"))
    yield found
    found.web.close()
    assert found.nsqd.stop() == 0
    found.nsqd.assert_calm()


def order(number: int) -> bytes:
    return json.dumps({"user": f"u{number % 3}", "amount": number}).encode()


def asked(table: type[Any], node: Node, **options: Any) -> Any:
    return table(nsqd=(f"http://{node.address}",), **options)


def done(spark: SparkSession, module: Any, options: Any, folder: Path, name: str = "a-job") -> dict[str, int]:
    """Run it over what there is; the rows of each of its queries."""
    return {each.name: each.rows for each in ended(spark, module, options, str(folder / "checkpoint"), name)}


def ended(spark: SparkSession, module: Any, options: Any, checkpoint: str, name: str = "a-job") -> list[Standing]:
    """How its queries are when they are done."""
    watches: list[Watch] = module.start(spark, Job(name, options, checkpoint))
    for each in watches:
        each.query.awaitTermination()
    return [each.look() for each in watches]


def bodies(spark: SparkSession, node: Node, topic: str) -> list[bytes]:
    return sorted(bytes(row.body) for row in node.read(spark, topic).collect())


def test_an_archive_has_each_message_once_however_often_it_goes_on(
    spark: SparkSession, node: Node, tmp_path: Path
) -> None:
    # given messages, of which some are no JSON
    node.publish("sold", *map(order, range(100)), b"garbage", b'{"user": 1')
    options = asked(Archive, node, topic=("sold",), to=str(tmp_path / "files"), schema=SCHEMA)
    # when they are archived, and more that come later, and once more
    first = done(spark, archive, options, tmp_path)
    node.publish("sold", *map(order, range(100, 150)))
    second = done(spark, archive, options, tmp_path)
    third = done(spark, archive, options, tmp_path)
    # then each stands there once, those that do not parse on their own, and it is counted so
    assert first == {"a-job": 100, "a-job:bad": 2}
    assert second == {"a-job": 50, "a-job:bad": 0}
    assert third == {"a-job": 0, "a-job:bad": 0}
    files = spark.read.parquet(str(tmp_path / "files"))
    assert sorted(row.amount for row in files.select("body.amount").collect()) == list(range(150))
    assert {"topic", "date", "hour", "node", "offset", "id", "timestamp"} <= set(files.columns)
    bad = spark.read.parquet(str(tmp_path / "files" / "_bad"))
    assert sorted(bytes(row.body) for row in bad.collect()) == [b"garbage", b'{"user": 1']


def test_a_folder_knows_the_checkpoint_that_it_was_written_by(spark: SparkSession, node: Node, tmp_path: Path) -> None:
    # given an archive, of which the files are counted batch by batch, over a list that Spark writes anew at times
    node.publish("files", *map(order, range(40)))
    folder, checkpoint = str(tmp_path / "files"), str(tmp_path / "checkpoint")
    options = asked(Archive, node, topic=("files",), to=folder, max_offsets_per_trigger=10, rows_per_file=3)
    spark.conf.set(COMPACTING, "2")
    (standing,) = ended(spark, archive, options, checkpoint)
    spark.conf.unset(COMPACTING)
    assert (standing.rows, standing.batches) == (40, 4)
    assert standing.files == len(list((tmp_path / "files").rglob("*.parquet"))) == 16
    assert list((tmp_path / "files" / "_spark_metadata").glob("*.compact"))
    # when it goes on with another checkpoint, then that is refused: its first batch would be passed over
    with pytest.raises(BadOption, match="was written by a job with another checkpoint"):
        archive.start(spark, Job("a-job", options, str(tmp_path / "other")))
    # and when the folder is gone, then too: what is there would be but a part
    rmtree(folder)
    with pytest.raises(BadOption, match="is not there any more: remove its checkpoint"):
        archive.start(spark, Job("a-job", options, checkpoint))


def test_what_was_archived_is_published_again_filtered_and_as_it_was(
    spark: SparkSession, node: Node, tmp_path: Path
) -> None:
    # given an archive of lines
    node.publish("old", *map(order, range(30)))
    done(spark, archive, asked(Archive, node, topic=("old",), to=str(tmp_path / "f"), format="json"), tmp_path, "in")
    # when a part of it is replayed into another topic
    options = asked(
        Replay, node, source=str(tmp_path / "f"), format="json", topic="again", where_sql="offset >= 10 AND offset < 20"
    )
    rows = done(spark, replay, options, tmp_path / "replay")
    # then that part is there, as it was
    assert rows == {"a-job": 10}
    assert bodies(spark, node, "again") == sorted(map(order, range(10, 20)))


def test_a_replay_at_a_rate_publishes_at_once_what_is_due_by_and_by(
    spark: SparkSession, node: Node, tmp_path: Path
) -> None:
    # given an archive
    node.publish("burst", *map(order, range(40)))
    done(spark, archive, asked(Archive, node, topic=("burst",), to=str(tmp_path / "f")), tmp_path, "in")
    node.web.post("/topic/create?topic=slow")
    node.web.post("/channel/create?topic=slow&channel=c")
    # when it is replayed at a rate that takes 100 s
    options = asked(Replay, node, source=str(tmp_path / "f"), topic="slow", rate=0.4)
    done(spark, replay, options, tmp_path / "replay")
    # then all are there, and are due over that time
    slow = node.nsqd.channel("slow", "c")
    due = [each["due_ms"] for each in node.web.get(PEEK).json()["messages"]]
    assert slow["depth"] + slow["deferred_count"] == 40
    assert len(due) > 20
    assert max(due) <= 102_000
    assert max(due) - min(due) > 40_000


def test_sql_makes_a_topic_of_topics_and_what_it_cannot_read_goes_to_another(
    spark: SparkSession, node: Node, tmp_path: Path
) -> None:
    # given two topics that belong together
    node.publish("bought", *map(order, range(20)), b"garbage")
    node.publish("users", *(json.dumps({"user": f"u{number}", "name": f"N{number}"}).encode() for number in range(2)))
    options = asked(
        Transform,
        node,
        topic=("bought", "users"),
        schema=(("users", "user STRING, name STRING"), ("", SCHEMA)),
        sql="SELECT name, amount FROM bought JOIN users USING (user) WHERE amount >= 10",
        to_topic="named",
        dead_letter="dead",
    )
    # when they are joined
    rows = done(spark, transform, options, tmp_path)
    # then the rows are published as JSON, and the others as they were
    expected = [{"name": f"N{number % 3}", "amount": number} for number in range(10, 20) if number % 3 < 2]
    found = [json.loads(body) for body in bodies(spark, node, "named")]
    assert sorted(found, key=lambda row: row["amount"]) == expected
    assert rows["a-job"] == len(expected)
    assert [json.loads(body)["body"] for body in bodies(spark, node, "dead")] == ["garbage"]


def test_a_window_is_published_when_nothing_more_can_come_for_it(
    spark: SparkSession, node: Node, tmp_path: Path
) -> None:
    # given visits at times of their own, the last two hours behind the first
    times = ("10:05", "10:40", "10:59", "11:20", "12:30")
    node.publish("visits", *(json.dumps({"at": f"2026-01-31T{time}:00Z"}).encode() for time in times))
    asking = {
        "topic": ("visits",), "schema": (("", "at TIMESTAMP"),), "watermark": "30 minutes", "to_topic": "hours",
        "sql": "SELECT hour(window.start) AS hour, count(*) AS visits FROM visits GROUP BY window(at, '1 hour')",
    }  # fmt: skip
    # when they are counted by the hour
    done(spark, transform, asked(Transform, node, event_time="at", **asking), tmp_path)
    # then the hours are there that ended half an hour before the last visit
    assert [json.loads(body) for body in bodies(spark, node, "hours")] == [
        {"hour": 10, "visits": 3},
        {"hour": 11, "visits": 1},
    ]
    # and what is no time is refused
    for wrong, sentence in (
        ({"event_time": "nothing"}, "--event-time: nothing is no column of visits"),
        ({"event_time": "body"}, "--event-time: body is no column of visits"),
        ({"watermark": "soon"}, "--watermark: "),
    ):
        job = Job("other", asked(Transform, node, **{**asking, **wrong}), str(tmp_path / "other"))
        with pytest.raises(BadOption, match=sentence):
            transform.start(spark, job)


def test_a_function_of_the_user_makes_rows_of_rows(
    spark: SparkSession, node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a module of the user's, where the command is called
    (tmp_path / "mine_of_test.py").write_text(
        "def big(events):\n    return events.where('amount >= 8').select('user')\n"
    )
    monkeypatch.chdir(tmp_path)
    node.publish("events", *map(order, range(10)))
    options = asked(
        Transform, node, topic=("events",), schema=(("", SCHEMA),), function="mine_of_test:big", to=str(tmp_path / "o")
    )
    # when it is run
    done(spark, transform, options, tmp_path)
    # then its rows are written
    assert sorted(row.user for row in spark.read.parquet(str(tmp_path / "o")).collect()) == ["u0", "u2"]


def test_a_query_sees_an_archive_of_json_lines_and_says_what_is_none(
    spark: SparkSession, node: Node, tmp_path: Path
) -> None:
    # given an archive of lines, and a folder of something else
    node.publish("lines", *map(order, range(3)))
    done(spark, archive, asked(Archive, node, topic=("lines",), to=str(tmp_path / "f"), format="json"), tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("neither\n")
    # when they are asked
    kept, other = (Sql(archive=(("kept", str(tmp_path / name)),)) for name in ("f", "other"))
    rows = rows_of(spark, kept, "SELECT topic, body FROM kept ORDER BY offset").collect()
    # then the lines are rows, and the others are refused
    assert [(row.topic, json.loads(row.body)["amount"]) for row in rows] == [("lines", 0), ("lines", 1), ("lines", 2)]
    with pytest.raises(BadOption, match=r"--archive: .*other: "):
        rows_of(spark, other, "SELECT 1")


def test_a_query_sees_topics_and_archives_as_tables(spark: SparkSession, node: Node, tmp_path: Path) -> None:
    # given a topic whose bodies are JSON, one of plain text, and an archive
    node.publish("json-ones", *map(order, range(5)))
    node.publish("texts", b"a", b"b")
    done(spark, archive, asked(Archive, node, topic=("texts",), to=str(tmp_path / "f")), tmp_path, "in")
    options = asked(Sql, node, topic=("json-ones", "texts"), archive=(("kept", str(tmp_path / "f")),))
    # when they are asked together
    query = "SELECT (SELECT sum(amount) FROM `json-ones`) s, t.body FROM texts t JOIN kept k USING (body) ORDER BY body"
    rows = rows_of(spark, options, query).collect()
    # then fields are columns where they can be
    assert [(row.s, row.body) for row in rows] == [(10, "a"), (10, "b")]


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        pytest.param("SELEC 1", "SELEC", id="no-sql"),
        pytest.param("SELECT nothing FROM texts", "nothing", id="no-column"),
    ],
)
def test_a_query_that_is_none_is_a_sentence(spark: SparkSession, node: Node, query: str, sentence: str) -> None:
    node.publish("texts", b"c")
    with pytest.raises(BadOption, match=sentence):
        rows_of(spark, asked(Sql, node, topic=("texts",)), query)
