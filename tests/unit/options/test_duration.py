from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.options.duration import LONGEST, Duration, as_text, duration

MS = 10**6
SECOND = 10**9
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("-0", 0),
        ("0s", 0),
        ("1ns", 1),
        ("3us", 3_000),
        ("3µs", 3_000),
        ("3μs", 3_000),
        ("500ms", 500 * MS),
        ("5s", 5 * SECOND),
        ("+5s", 5 * SECOND),
        ("-5s", -5 * SECOND),
        ("05s", 5 * SECOND),
        ("1.5s", 1500 * MS),
        (".5s", 500 * MS),
        ("1.s", SECOND),
        ("-.5h", -30 * MINUTE),
        ("1m30s", 90 * SECOND),
        ("2h45m", 2 * HOUR + 45 * MINUTE),
        ("1h1h", 2 * HOUR),
        ("30s1h", HOUR + 30 * SECOND),
        ("168h", 168 * HOUR),
        ("0.0000000019s", 1),
        ("9223372036854775807ns", LONGEST),
        ("-9223372036854775808ns", -LONGEST - 1),
    ],
)
def test_a_duration_is_read_as_go_reads_it(text: str, expected: int) -> None:
    assert duration(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "-", "+", "s", ".s", "-.s", ".", "1 s", " 1s", "1s ", "1x", "1d", "1.2.3s", "1s5", "--1s", "1S", "1hm", "٣s",
     "1e3s", "1_0s", "infs", "9" * 5000 + "s"],
)  # fmt: skip
def test_what_is_no_duration_says_how_one_looks(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration, such as 1m30s"):
        duration(text)


def test_a_number_without_a_unit_is_asked_for_one() -> None:
    with pytest.raises(ValueError, match="a duration needs a unit, as in 5s or 5ms"):
        duration("5")


@pytest.mark.parametrize("text", ["9223372036854775808ns", "-9223372036854775809ns", "3000000h"])
def test_what_64_bits_cannot_count_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="longer than any duration"):
        duration(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1_500, "1.5us"),
        (34_673_785, "34.673785ms"),
        (-999, "-999ns"),
        (25 * MS, "25ms"),
        (1500 * MS, "1.5s"),
        (MINUTE, "1m"),
        (90 * SECOND, "1m30s"),
        (168 * HOUR, "168h"),
        (HOUR + SECOND, "1h1s"),
        (-90 * SECOND, "-1m30s"),
        (-25 * MS, "-25ms"),
    ],
)
def test_a_duration_is_written_in_its_shortest_usual_form(value: int, text: str) -> None:
    assert as_text(Duration(value)) == text


@given(st.integers(-LONGEST - 1, LONGEST))
def test_what_is_written_reads_back_as_the_same(value: int) -> None:
    assert duration(as_text(Duration(value))) == value


@given(st.text(alphabet="0123456789.-+hmsnuµ \n", max_size=12))
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    # given any text, when it is read, then it is refused with a ValueError or is within 64 bits
    with suppress(ValueError):
        assert -LONGEST - 1 <= duration(text) <= LONGEST
