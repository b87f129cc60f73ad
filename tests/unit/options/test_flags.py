from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import BadFlag
from penstock.options.flags import read_flags
from penstock.options.kinds import KINDS

FLAGS = {
    "path": KINDS["str"],
    "size": KINDS["int"],
    "fast": KINDS["bool"],
    "peer": KINDS["tuple[str, ...]"],
    "share": KINDS["tuple[float, ...]"],
}


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        pytest.param([], {}, id="none"),
        pytest.param(["--size=5"], {"size": 5}, id="two-hyphens-equals"),
        pytest.param(["--size", "5"], {"size": 5}, id="two-hyphens-next-word"),
        pytest.param(["-size=5"], {"size": 5}, id="one-hyphen-equals"),
        pytest.param(["-size", "5"], {"size": 5}, id="one-hyphen-next-word"),
        pytest.param(["--size", "-5"], {"size": -5}, id="the-next-word-may-begin-with-a-hyphen"),
        pytest.param(["--path", "--fast"], {"path": "--fast"}, id="the-next-word-may-look-like-a-flag"),
        pytest.param(["--path=a=b"], {"path": "a=b"}, id="equals-in-the-value"),
        pytest.param(["--path="], {"path": ""}, id="empty"),
        pytest.param(["--path", ""], {"path": ""}, id="empty-next-word"),
        pytest.param(["-fast"], {"fast": True}, id="bare"),
        pytest.param(["--fast", "--size=5"], {"fast": True, "size": 5}, id="bare-before-another"),
        pytest.param(["-fast=false"], {"fast": False}, id="bool-false"),
        pytest.param(["--fast=t"], {"fast": True}, id="bool-true"),
        pytest.param(["--size=5", "--size=6"], {"size": 6}, id="the-last-one-counts"),
        pytest.param(["--peer=a", "--peer", "b"], {"peer": ("a", "b")}, id="many"),
        pytest.param(["--peer=a,b"], {"peer": ("a,b",)}, id="a-comma-does-not-part-strings"),
        pytest.param(["--share=1,0.5", "--share=0.1"], {"share": (1.0, 0.5, 0.1)}, id="a-comma-parts-numbers"),
        pytest.param(["--size=5", "--"], {"size": 5}, id="end-of-flags"),
        pytest.param(["--help"], {"help": True}, id="help"),
        pytest.param(["--size=5", "-h", "--nonsense"], {"help": True}, id="help-before-all-else"),
    ],
)
def test_flags_are_read_as_go_reads_them(argv: list[str], expected: dict[str, Any]) -> None:
    assert read_flags(FLAGS, argv) == expected


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["--siz=5"], "there is no flag --siz; did you mean --size?"),
        (["--zzz"], "there is no flag --zzz"),
        (["--Size=5"], "there is no flag --Size; did you mean --size?"),
        (["--size"], "--size needs a value"),
        (["--size=x"], "--size: 'x' is not a whole number"),
        (["--fast=maybe"], "--fast: 'maybe' is neither true nor false"),
        (["---size=5"], "'---size=5' is not a flag"),
        (["--=5"], "'--=5' is not a flag"),
        (["-=5"], "'-=5' is not a flag"),
        (["-"], "'-' is not a flag"),
        ([""], "'' is not a flag"),
        (["size=5"], "'size=5' is not a flag"),
        (["--size", "5", "6"], "'6' is not a flag"),
        (["--fast", "false", "--size=5"], "'false' is not a flag; a value for --fast is written --fast=false"),
        (["--", "--size=5"], "'--size=5' stands behind the flags, where nothing may stand"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_command_line_that_cannot_be_read_is_refused_with_a_sentence(argv: list[str], why: str) -> None:
    with pytest.raises(BadFlag) as refusal:
        read_flags(FLAGS, argv)
    assert str(refusal.value) == why
    assert refusal.value.exit_code == 2


@given(st.lists(st.text() | st.sampled_from(["--size", "-fast", "--peer=a", "--", "-", "=", "--path"])))
def test_any_command_line_is_read_or_refused(argv: list[str]) -> None:
    # given any words, when they are read, then they are refused or give values of flags that there are
    with suppress(BadFlag):
        assert read_flags(FLAGS, argv).keys() <= {*FLAGS, "help"}
