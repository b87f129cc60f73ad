from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.options.kinds import KINDS, LARGEST, Int, Words

TRUE = ["1", "t", "T", "true", "TRUE", "True"]
FALSE = ["0", "f", "F", "false", "FALSE", "False"]
COLOURS = Words({"red": 1, "crimson": 1, "blue": 2, "": 2})


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        *[pytest.param("bool", word, True, id=f"bool-{word}") for word in TRUE],
        *[pytest.param("bool", word, False, id=f"bool-{word}") for word in FALSE],
        ("int", "0", 0),
        ("int", "-0", 0),
        ("int", "2500", 2500),
        ("int", "+7", 7),
        ("int", "-7", -7),
        ("int", "0x1F", 31),
        ("int", "0X_1f", 31),
        ("int", "017", 15),
        ("int", "-0_17", -15),
        ("int", "0o17", 15),
        ("int", "0b101", 5),
        ("int", "1_000_000", 1_000_000),
        ("int", str(LARGEST), LARGEST),
        ("int", str(-LARGEST - 1), -LARGEST - 1),
        ("Duration", "1m30s", 90 * 10**9),
        ("str", "", ""),
        ("str", " a ", " a "),
        ("tuple[str, ...]", "a:1", ("a:1",)),
        ("tuple[str, ...]", "", ()),
        ("tuple[float, ...]", "0.99", (0.99,)),
        ("tuple[float, ...]", "1.0,0.99, 0.95", (1.0, 0.99, 0.95)),
    ],
)
def test_a_flag_s_text_is_read_as_go_reads_it(kind: str, text: str, expected: object) -> None:
    assert KINDS[kind].parse(text) == expected


@pytest.mark.parametrize(
    ("kind", "text", "why"),
    [
        ("bool", "yes", "'yes' is neither true nor false"),
        ("bool", "tRUE", "neither"),
        ("bool", "", "neither"),
        ("int", "", "'' is not a whole number"),
        ("int", "1.5", "not a whole number"),
        ("int", " 1", "not a whole number"),
        ("int", "1_", "not a whole number"),
        ("int", "1__0", "not a whole number"),
        ("int", "08", "not a whole number"),
        ("int", "0x", "not a whole number"),
        ("int", "٣", "not a whole number"),
        ("int", "9" * 5000, "not a whole number"),
        ("int", str(LARGEST + 1), "no 64-bit number"),
        ("int", str(-LARGEST - 2), "no 64-bit number"),
        ("Duration", "5", "needs a unit"),
        ("tuple[float, ...]", "0.99,x", "'x' is not a number"),
    ],
)
def test_a_flag_s_text_that_says_nothing_is_refused(kind: str, text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        KINDS[kind].parse(text)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("bool", True, True),
        ("bool", "false", False),
        ("int", 7, 7),
        pytest.param("int", "7", 7, id="int-as-text"),
        ("Duration", "2s", 2 * 10**9),
        ("Duration", 5000, 5 * 10**9),
        ("str", "text", "text"),
        ("tuple[str, ...]", ["a:1", "b:2"], ("a:1", "b:2")),
        ("tuple[str, ...]", "a:1,b:2", ("a:1", "b:2")),
        ("tuple[str, ...]", [""], ()),
        ("tuple[float, ...]", [1, 0.99], (1.0, 0.99)),
        ("tuple[float, ...]", "1.0,0.99", (1.0, 0.99)),
    ],
)
def test_the_config_file_may_hold_a_value_or_its_text(kind: str, value: object, expected: object) -> None:
    assert KINDS[kind].take(value) == expected


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("bool", 1),  # NSQ takes 1 for false and 0 for true
        ("int", True),
        ("int", 1.5),
        ("int", LARGEST + 1),
        ("Duration", 1.5),
        ("Duration", True),
        ("Duration", LARGEST),
        ("str", 5),
        ("tuple[str, ...]", [5]),
        ("tuple[str, ...]", 5),
        ("tuple[float, ...]", ["x"]),
        ("tuple[float, ...]", [True]),
        ("tuple[float, ...]", 0.99),
    ],
)
def test_the_config_file_may_not_hold_a_value_of_another_type(kind: str, value: object) -> None:
    with pytest.raises(ValueError, match=r"is not|is no|is longer"):
        KINDS[kind].take(value)


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("bool", False, "false"),
        ("int", 100 << 20, "104857600"),
        ("Duration", 60 * 10**9, "1m"),
        ("tuple[str, ...]", ("a", "b"), "a,b"),
        ("tuple[float, ...]", (1.0, 0.95), "1.0,0.95"),
    ],
)
def test_a_value_is_shown_as_a_person_would_write_it(kind: str, value: Any, text: str) -> None:
    assert KINDS[kind].show(value) == text


@pytest.mark.parametrize(("value", "why"), [(0, "0 is below 1"), (10, "10 is above 9")])
def test_a_number_out_of_bounds_is_told_the_bound(value: int, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Int().check(value, 1, 9)


@pytest.mark.parametrize(("text", "expected"), [("red", 1), ("RED", 1), ("Crimson", 1), ("blue", 2), ("", 2)], ids=repr)
def test_a_word_is_known_in_any_case(text: str, expected: int) -> None:
    assert COLOURS.parse(text) == expected


def test_the_first_word_of_a_value_is_the_one_that_is_shown() -> None:
    # given words of which two mean the same
    # when the values are shown, then each has one word
    assert COLOURS.choices() == ["red", "blue"]
    # and who writes another is told them
    with pytest.raises(ValueError, match="'green' is none of red, blue"):
        COLOURS.parse("green")


@given(st.sampled_from(sorted(KINDS)), st.text())
def test_any_text_is_refused_or_a_value_whose_text_says_the_same(kind: str, text: str) -> None:
    # given any text, when it is read, then it is refused with a ValueError or reads back as the same value
    with suppress(ValueError):
        value = KINDS[kind].parse(text)
        assert repr(KINDS[kind].parse(KINDS[kind].show(value))) == repr(value)
