"""The rule for names is NSQ's to the character."""

from __future__ import annotations

import pytest

from penstock.protocol.names import is_ephemeral, is_valid


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("t", id="one character"),
        pytest.param("a" * 64, id="64 characters"),
        pytest.param("a" * 54 + "#ephemeral", id="64 characters with the suffix"),
        pytest.param("Az09._-", id="every kind of character"),
        pytest.param("t#ephemeral", id="ephemeral"),
        pytest.param(".", id="a dot"),
        pytest.param("..", id="two dots"),
        pytest.param("-", id="a dash"),
        pytest.param("nsqd.dat", id="the name of nsqd's list"),
        pytest.param("x.diskqueue.000001.dat", id="the name of a file of a queue"),
    ],
)
def test_a_name_that_nsq_accepts_is_valid(name: str) -> None:
    assert is_valid(name)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("", id="empty"),
        pytest.param("a" * 65, id="65 characters"),
        pytest.param("a" * 55 + "#ephemeral", id="65 characters with the suffix"),
        pytest.param("#ephemeral", id="the suffix alone"),
        pytest.param("t#Ephemeral", id="the suffix in another case"),
        pytest.param("t#ephemeral2", id="more behind the suffix"),
        pytest.param("t#ephemeral#ephemeral", id="the suffix twice"),
        pytest.param("t#other", id="another suffix"),
        pytest.param("t\n", id="a newline behind"),
        pytest.param("t\nt", id="a newline inside"),
        pytest.param("t t", id="a space"),
        pytest.param("t:c", id="a colon"),
        pytest.param("t;c", id="a semicolon"),
        pytest.param("a/b", id="a slash"),
        pytest.param("a\0", id="a zero byte"),
        pytest.param("ü", id="a letter outside ASCII"),
        pytest.param("\u0663", id="a digit outside ASCII"),
    ],
)
def test_a_name_that_nsq_refuses_is_not_valid(name: str) -> None:
    assert not is_valid(name)


def test_only_the_suffix_makes_a_name_ephemeral() -> None:
    assert is_ephemeral("t#ephemeral")
    assert not is_ephemeral("ephemeral")
