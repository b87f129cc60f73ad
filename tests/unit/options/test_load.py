"""Precedence, bounds, and features that are not there, on a small program of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from penstock import NSQ_VERSION, __version__
from penstock.errors import BadFlag, BadOption
from penstock.options import Duration, Program, duration, load, option, options_of

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of a mill."""

    wheel_count: int = option(1, "how many wheels turn", least=1, most=9, heading="Wheels")
    pause: Duration = option(duration("1m"), "how long they rest", key="rest")
    names: tuple[str, ...] = option((), "what a wheel is called", flag="name")
    sluice: bool = option(True, "whether the sluice is open")
    place: str = option(lambda: "here", "where the mill stands", shown="here")
    steam: str = option("", "the boiler", needs="steam engine")
    sails: bool = option(False, "nothing", deprecated="--wheel-count")


MILL = Program("mill", "grinds grain.", Options)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mill.toml"


def test_without_flags_and_file_all_has_its_default() -> None:
    assert load(MILL, []) == (Options(), [])
    assert Options().place == "here"


def test_a_flag_counts_more_than_the_file_and_the_file_more_than_the_default(file: Path) -> None:
    # given a file with two options
    file.write_text('wheel_count = 2\nrest = "5s"\n')
    # when one of them is a flag as well
    options, notes = load(MILL, [f"--config={file}", "--pause=7s"])
    # then each is what the strongest says
    assert options == Options(wheel_count=2, pause=duration("7s"))
    assert notes == []


def test_a_flag_that_says_the_default_counts_more_than_the_file(file: Path) -> None:
    file.write_text("wheel_count = 2\nsluice = false\n")
    assert load(MILL, ["--wheel-count=1", "--sluice", "-config", str(file)])[0] == Options()


def test_a_list_of_flags_replaces_the_list_in_the_file(file: Path) -> None:
    file.write_text('names = ["one", "two"]\n')
    assert load(MILL, [f"--config={file}"])[0].names == ("one", "two")
    assert load(MILL, [f"--config={file}", "--name=three"])[0].names == ("three",)


def test_a_flag_does_not_count_for_another_whose_name_it_holds(file: Path) -> None:
    # NSQ looks for the name anywhere in the command line
    file.write_text("rest = 5000\n")
    assert load(MILL, [f"--config={file}", "--name=--pause"])[0].pause == duration("5s")


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("colour = 1", "colour is not known and has no effect"),
        ("wheel_cuont = 2", "wheel_cuont is not known and has no effect; did you mean wheel_count?"),
        ("[wheels]\ncount = 2", "wheels is not known and has no effect"),
        ("config = 'x'", "config is not known and has no effect"),
    ],
)
def test_a_key_that_is_not_known_is_noted_and_changes_nothing(file: Path, line: str, note: str) -> None:
    file.write_text(line)
    assert load(MILL, [f"--config={file}"]) == (Options(), [f"config file {file}: {note}"])


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"rest = ", "Invalid value"),
        (b"rest = '5s'\nrest = '6s'", "Cannot overwrite a value"),
        (b"place = '\xff'", "can't decode byte 0xff"),
        (b"rest = '5'", "rest: a duration needs a unit"),
        (b"wheel_count = 2.5", "wheel_count: 2.5 is not of the type int"),
        (b"wheel_count = 1979-05-27", "wheel_count: datetime.date"),
        (b"wheel_count = 10", "wheel_count: 10 is above 9"),
        (b"steam = 'big'", "steam: this version has no steam engine yet"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_its_path(file: Path, content: bytes, why: str) -> None:
    file.write_bytes(content)
    with pytest.raises(BadOption) as refusal:
        load(MILL, [f"--config={file}"])
    assert str(refusal.value).startswith(f"config file {file}: ")
    assert why in str(refusal.value)
    assert refusal.value.exit_code == 1


def test_a_file_that_is_not_there_is_refused(file: Path) -> None:
    with pytest.raises(BadOption, match="No such file"):
        load(MILL, [f"--config={file}"])


def test_a_file_may_begin_with_a_byte_order_mark(file: Path) -> None:
    file.write_text("wheel_count = 2", encoding="utf-8-sig")
    assert load(MILL, [f"--config={file}"])[0].wheel_count == 2


@pytest.mark.parametrize(
    ("flag", "why"),
    [
        ("--wheel-count=0", "--wheel-count: 0 is below 1, the least that is possible"),
        ("--wheel-count=10", "--wheel-count: 10 is above 9, the most that is possible"),
        ("--pause=-1s", "--pause: -1s is below 0s, the least that is possible"),
        ("--steam=big", "--steam: this version has no steam engine yet"),
    ],
)
def test_a_value_that_cannot_be_had_is_refused_with_a_sentence(flag: str, why: str) -> None:
    with pytest.raises(BadOption) as refusal:
        load(MILL, [flag])
    assert str(refusal.value) == why
    assert not isinstance(refusal.value, BadFlag)


def test_a_feature_that_is_not_there_may_be_declined() -> None:
    assert load(MILL, ["--steam="]) == (Options(), [])


@pytest.mark.parametrize(
    ("flag", "note"),
    [
        ("--sails", "--sails is deprecated and has no effect; use --wheel-count"),
    ],
)
def test_what_does_no_harm_is_taken_with_a_note(flag: str, note: str) -> None:
    assert load(MILL, [flag])[1] == [note]


def test_the_version_begins_as_nsq_s_and_ends_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    # when the version is asked for
    with pytest.raises(SystemExit) as end:
        load(MILL, ["--version", "--wheel-count=2"])
    # then it is shown, and that was all
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith(f"mill v{NSQ_VERSION} (penstock v{__version__}, Python 3.")


def test_help_shows_every_flag_in_its_group_and_ends_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    # when help is asked for, whatever else is
    with pytest.raises(SystemExit) as end:
        load(MILL, ["--help", "--nonsense"])
    # then all flags are shown
    assert end.value.code == 0
    shown = capsys.readouterr().out
    assert "\nWheels:\n  --wheel-count=int" in shown
    for row in options_of(Options):
        assert f"\n  --{row.flag}" in shown


def test_options_built_by_hand_are_the_ones_that_are_loaded() -> None:
    # given a table whose field has another key and another flag than its name
    rows = {row.field: row for row in options_of(Options)}
    # then the row says so
    assert (rows["pause"].key, rows["pause"].flag) == ("rest", "pause")
    assert (rows["names"].key, rows["names"].flag) == ("names", "name")
    assert (rows["wheel_count"].key, rows["wheel_count"].flag) == ("wheel_count", "wheel-count")
