"""A file's name tells whose it is, whatever the topic is called."""

from __future__ import annotations

import pytest

from penstock.log.original.names import (
    FileName,
    QueueName,
    data_name,
    is_old_metadata,
    meta_name,
    parse_file,
    parse_queue,
)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        pytest.param("t.diskqueue.000000.dat", FileName("t", 0, False), id="a topic's"),
        pytest.param("t:c.diskqueue.000012.dat", FileName("t:c", 12, False), id="a channel's"),
        pytest.param("t;c.diskqueue.000012.dat", FileName("t;c", 12, False), id="a channel's on Windows"),
        pytest.param("t.diskqueue.1234567.dat", FileName("t", 1234567, False), id="more than a million files"),
        pytest.param("t.diskqueue.meta.dat", FileName("t", None, False), id="meta"),
        pytest.param("t.diskqueue.000003.dat.bad", FileName("t", 3, True), id="bad"),
        pytest.param("..diskqueue.000000.dat", FileName(".", 0, False), id="a topic called ."),
        pytest.param("...diskqueue.meta.dat", FileName("..", None, False), id="a topic called .."),
        pytest.param("nsqd.dat.diskqueue.000000.dat", FileName("nsqd.dat", 0, False), id="a topic called nsqd.dat"),
        pytest.param(
            "x.diskqueue.000001.dat.diskqueue.000002.dat",
            FileName("x.diskqueue.000001.dat", 2, False),
            id="a topic called as a file",
        ),
        pytest.param(
            "x.diskqueue.meta.dat.diskqueue.meta.dat",
            FileName("x.diskqueue.meta.dat", None, False),
            id="a topic called as a meta file",
        ),
        pytest.param("a b.diskqueue.000000.dat", FileName("a b", 0, False), id="a name that no topic has"),
    ],
)
def test_a_file_of_a_queue_is_known_by_the_end_of_its_name(name: str, file: FileName) -> None:
    assert parse_file(name) == file


@pytest.mark.parametrize(
    "name",
    [
        "nsqd.dat",
        "nsqd.dat.diskqueue",
        ".diskqueue.000000.dat",
        "t.diskqueue.00000.dat",
        "t.diskqueue.0000001.dat",
        "t.diskqueue.00000a.dat",
        "t.diskqueue.-00001.dat",
        "t.diskqueue.\u0660\u0660\u0660\u0660\u0660\u0660.dat",
        "t.diskqueue.9999999999999999999.dat",
        "t.diskqueue.meta.dat.bad",
        "t.diskqueue.meta.dat.5577006791947779410.tmp",
        "t.diskqueue.000000.dat\n",
        "t.diskqueue.000000.dat.bad.bad",
    ],
)
def test_a_file_of_another_kind_belongs_to_no_queue(name: str) -> None:
    assert parse_file(name) is None


@pytest.mark.parametrize("queue", ["t", "t:c", ".:..", "nsqd.dat:x.diskqueue.000001.dat", "t;c"])
@pytest.mark.parametrize("number", [0, 999_999, 1_000_000])
def test_names_that_are_made_are_understood(queue: str, number: int) -> None:
    assert parse_file(data_name(queue, number)) == FileName(queue, number, False)
    assert parse_file(meta_name(queue)) == FileName(queue, None, False)


@pytest.mark.parametrize(
    ("queue", "owner"),
    [
        ("t", QueueName("t", None)),
        ("t:c", QueueName("t", "c")),
        ("t;c", QueueName("t", "c")),
        (".:..", QueueName(".", "..")),
        ("t#ephemeral:c#ephemeral", QueueName("t#ephemeral", "c#ephemeral")),
        ("t:", None),
        (":c", None),
        ("t:c:d", None),
        ("t:c;d", None),
        ("a b", None),
        ("a" * 65, None),
    ],
)
def test_a_queue_belongs_to_a_topic_or_to_one_of_its_channels(queue: str, owner: QueueName | None) -> None:
    assert parse_queue(queue) == owner


def test_the_name_that_an_older_nsqd_gave_its_list_is_known() -> None:
    assert is_old_metadata("nsqd.712.dat")
    assert not any(map(is_old_metadata, ["nsqd.dat", "nsqd..dat", "nsqd.x.dat", "nsqd.712.dat.tmp"]))
