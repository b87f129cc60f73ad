"""nsqd.dat is understood where nsqd understands it, and nowhere else."""

from __future__ import annotations

import json

import pytest

from penstock.log.original.metadata import ChannelEntry, Metadata, TopicEntry, encode, parse


def test_what_nsqd_wrote_is_read() -> None:
    # given a list by nsqd, which writes null where a topic has no channels
    text = (
        b'{"topics":[{"name":"a","paused":true,"channels":null},{"name":"b","paused":false,'
        b'"channels":[{"name":"c","paused":true},{"name":"d","paused":false}]}],"version":"1.3.0"}'
    )
    # when it is read
    metadata = parse(text)
    # then all of it is there
    assert metadata == Metadata(
        "1.3.0",
        (
            TopicEntry("a", True, ()),
            TopicEntry("b", False, (ChannelEntry("c", True), ChannelEntry("d", False))),
        ),
    )
    # and stays when it is written and read again
    assert parse(encode(metadata)) == metadata


def test_what_is_written_has_the_fields_of_nsqd() -> None:
    metadata = Metadata("1.3.0", (TopicEntry("t", False, (ChannelEntry("c", True),)), TopicEntry("u", True, ())))
    assert json.loads(encode(metadata)) == {
        "topics": [
            {"name": "t", "paused": False, "channels": [{"name": "c", "paused": True}]},
            {"name": "u", "paused": True, "channels": []},
        ],
        "version": "1.3.0",
    }


@pytest.mark.parametrize(
    ("text", "metadata"),
    [
        pytest.param(b"{}", Metadata("", ()), id="nothing"),
        pytest.param(b"null", Metadata("", ()), id="null"),
        pytest.param(b'{"topics":null,"version":null}', Metadata("", ()), id="null fields"),
        pytest.param(
            b'{"Topics":[{"NAME":"t","more":[1]}]}', Metadata("", (TopicEntry("t", False, ()),)), id="case and more"
        ),
        pytest.param(b'{"topics":[null]}', Metadata("", (TopicEntry("", False, ()),)), id="a null topic"),
        pytest.param(b' {"topics" : []}\n', Metadata("", ()), id="spaces"),
    ],
)
def test_what_is_missing_is_empty(text: bytes, metadata: Metadata) -> None:
    assert parse(text) == metadata


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\0" * 64, id="zeros"),
        pytest.param(b'{"topics":[', id="cut"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b'{"topics":{}}', id="topics no list"),
        pytest.param(b'{"topics":[1]}', id="a topic that is none"),
        pytest.param(b'{"topics":[{"name":1}]}', id="a name that is a number"),
        pytest.param(b'{"topics":[{"name":"t","paused":"yes"}]}', id="a flag that is a text"),
        pytest.param(b'{"topics":[{"channels":{}}]}', id="channels no list"),
        pytest.param(b'{"version":1}', id="a version that is a number"),
        pytest.param(b'{"version":"\xff"}', id="no text at all"),
        pytest.param(b"[" * 100_000, id="very deep"),
    ],
)
def test_what_nsqd_would_not_start_from_is_refused(text: bytes) -> None:
    assert parse(text) is None
