from __future__ import annotations

from urllib.parse import parse_qs, quote_from_bytes, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.http.query import arguments, unquoted


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param(b"", {}, id="nothing"),
        pytest.param(b"topic=a", {"topic": ["a"]}, id="one"),
        pytest.param(b"topic=a&channel=b", {"topic": ["a"], "channel": ["b"]}, id="two"),
        pytest.param(b"topic=a&topic=b", {"topic": ["a", "b"]}, id="twice"),
        pytest.param(b"binary", {"binary": [""]}, id="no-value"),
        pytest.param(b"binary=", {"binary": [""]}, id="empty-value"),
        pytest.param(b"=a", {"": ["a"]}, id="no-name"),
        pytest.param(b"&&a=1&", {"a": ["1"]}, id="empty-pairs"),
        pytest.param(b"a=b=c", {"a": ["b=c"]}, id="an-equals-sign-in-the-value"),
        pytest.param(b"topic=a%23ephemeral", {"topic": ["a#ephemeral"]}, id="escaped"),
        pytest.param(b"t%6Fpic=%c3%A9", {"topic": ["é"]}, id="escaped-name-and-utf-8"),
        pytest.param(b"a=1+2%2B3", {"a": ["1 2+3"]}, id="plus-is-a-space"),
        pytest.param(b"a=%26%3D%3B", {"a": ["&=;"]}, id="escaped-separators"),
        pytest.param(b"a=\xc3\xa9", {"a": ["é"]}, id="utf-8-unescaped"),
        pytest.param(b"a=%ff\xfe", {"a": ["\udcff\udcfe"]}, id="no-utf-8"),
    ],
)
def test_a_query_is_read_as_go_reads_it(query: bytes, expected: dict[str, list[str]]) -> None:
    assert arguments(query) == expected


@pytest.mark.parametrize("query", [b"a=%", b"a=%4", b"a=%zz", b"%=a", b"a=%%41", b"a;b=1", b"a=1;b=2"])
def test_a_bad_escape_and_a_semicolon_are_refused_as_in_go(query: bytes) -> None:
    with pytest.raises(ValueError, match=r"escape|semicolon"):
        arguments(query)


@given(some.lists(some.tuples(some.text(min_size=1), some.text())))
def test_what_was_escaped_is_read_as_it_was(pairs: list[tuple[str, str]]) -> None:
    # given any names and values, escaped as a form's
    query = "&".join(f"{quote_plus(name, errors='surrogatepass')}={quote_plus(value)}" for name, value in pairs)
    # then they are read as Python's own reader does it
    assert arguments(query.encode()) == parse_qs(query, keep_blank_values=True, errors="surrogateescape")


@given(some.binary())
def test_escapes_are_undone(text: bytes) -> None:
    assert unquoted(quote_from_bytes(text, safe="").encode()) == text


@given(some.binary())
def test_whatever_stands_in_a_query_it_is_read_or_refused(query: bytes) -> None:
    try:
        found = arguments(query)
    except ValueError:
        assert b"%" in query or b";" in query
    else:
        assert sum(map(len, found.values())) <= query.count(b"&") + 1
