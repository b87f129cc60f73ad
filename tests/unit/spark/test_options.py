"""How the options of format("nsq") are read, whatever the table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.errors import BadOption
from penstock.options import option
from penstock.spark.options import SIZE, WHOLE, YES_NO, ConnectionOptions, name_of, read_options, table_rows
from penstock.spark.page import markdown

NODE = {"nsqd": "a:4151"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Table(ConnectionOptions):
    """One option of each kind."""

    at_most: int = option(7, "how many", kind=WHOLE, least=1, most=100, heading="How")
    bytes_at_once: int = option(1 << 20, "how much", kind=SIZE)
    careful: bool = option(True, "whether", kind=YES_NO)


def test_names_are_taken_in_any_case() -> None:
    # given what a user wrote, as Spark hands it over; when it is read
    read = read_options(Table, {"NSQD": "a:4151", "atmost": "9", "BytesAtOnce": "64m", "careful": "False"})
    # then each option has its value
    assert (read.nsqd, read.at_most, read.bytes_at_once, read.careful) == (("http://a:4151",), 9, 64 << 20, False)


def test_what_was_not_given_has_its_default() -> None:
    assert read_options(Table, NODE).at_most == 7


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        pytest.param({**NODE, "atMots": "1"}, "option atMots is unknown: did you mean atMost?", id="a-slip"),
        pytest.param({**NODE, "frobnicate": "1"}, "option frobnicate is unknown: there are atMost, ", id="unknown"),
        pytest.param({**NODE, "atMost": "many"}, "option atMost: 'many' is not a whole number", id="no-number"),
        pytest.param({**NODE, "atMost": "-1"}, "option atMost: '-1' is not a whole number", id="negative"),
        pytest.param({**NODE, "atMost": "0"}, "option atMost: 0 is below 1, the least", id="too-small"),
        pytest.param({**NODE, "atMost": "101"}, "option atMost: 101 is above 100, the most", id="too-large"),
        pytest.param({**NODE, "atMost": "9" * 30}, "is not a whole number", id="absurd"),
        pytest.param({**NODE, "bytesAtOnce": "1 mile"}, "option bytesAtOnce: '1 mile' is not a size", id="no-size"),
        pytest.param({**NODE, "careful": "1"}, "option careful: '1' is neither true nor false", id="no-bool"),
        pytest.param({**NODE, "most": "1", "atMost": "2"}, "options atMost and atMost are the same", id="twice"),
        pytest.param({}, "option lookupd or nsqd: one must say where the nodes are", id="nowhere"),
        pytest.param({"nsqd": " , "}, "option lookupd or nsqd: one must say", id="empty"),
        pytest.param({**NODE, "lookupd": "b:4161"}, "options lookupd and nsqd: only one", id="both"),
        pytest.param({"nsqd": "a"}, "option nsqd: 'a' is not host:port", id="no-port"),
        pytest.param({"nsqd": "a:0"}, "option nsqd: 'a:0' is not host:port", id="port-0"),
        pytest.param({"nsqd": "a:65536"}, "'a:65536' is not host:port", id="port-too-large"),
        pytest.param({"nsqd": "ftp://a:1"}, "'ftp://a:1' is not host:port", id="scheme"),
        pytest.param({"nsqd": "http://a:1/x"}, "'http://a:1/x' is not host:port", id="path"),
        pytest.param({"nsqd": "http://me@a:1"}, "is not host:port", id="user"),
    ],
)
def test_what_cannot_be_is_refused_by_name(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadOption) as refused:
        read_options(Table, given, aliases={"most": "atMost"})
    assert sentence in str(refused.value)


def test_an_alias_stands_for_its_option() -> None:
    assert read_options(Table, {**NODE, "Most": "3"}, aliases={"most": "atMost"}).at_most == 3


def test_addresses_become_urls_each_once() -> None:
    read = read_options(Table, {"lookupd": "a:4161, https://b.example:4161/,http://a:4161,[::1]:4161"})
    assert read.lookupd == ("http://a:4161", "https://b.example:4161", "http://[::1]:4161")


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("500", 500), ("1k", 1024), ("2kb", 2048), ("64M", 64 << 20), ("3g", 3 << 30), ("1t", 1 << 40)],
)
def test_sizes_are_written_as_in_spark(text: str, size: int) -> None:
    assert SIZE.parse(text) == size
    assert SIZE.parse(SIZE.show(size)) == size


def test_a_secret_comes_from_the_environment_where_no_option_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_TOKEN", "from outside")
    assert read_options(Table, NODE).secret("token") == "from outside"
    assert read_options(Table, {**NODE, "token": "given"}).secret("token") == "given"


def test_no_value_is_shown_where_options_are_printed() -> None:
    read = read_options(Table, {**NODE, "token": "hush"})
    assert "hush" not in repr(read)
    assert "hush" not in str(read)


def test_the_docs_have_a_row_for_each_option() -> None:
    rows = [row for row in table_rows(Table) if row.startswith("| `")]
    assert len(rows) == 9
    assert "| `bytesAtOnce` | size | `1m` | how much |" in rows


def test_the_page_of_options_is_up_to_date() -> None:
    page = Path(__file__).parents[3] / "docs" / "spark-options.md"
    assert page.read_text() == markdown(), "run `make docs`"


def test_a_field_in_the_table_is_a_name_in_camel_case() -> None:
    from penstock.options import options_of

    assert [name_of(row) for row in options_of(Table)][-3:] == ["atMost", "bytesAtOnce", "careful"]
