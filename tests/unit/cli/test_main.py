from __future__ import annotations

import os
import subprocess
import sys
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from penstock import __version__
from penstock.cli.main import COMMANDS, Command, main
from penstock.errors import DataPathError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from pathlib import Path

PLAY = {
    "pour": Command("a_module.pour", "pour water"),
    "log check": Command("a_module.check", "check a log"),
    "log show": Command("a_module.show", "show a log"),
}


@pytest.fixture
def subcommand(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts a module with that `run` where the command `name` of PLAY is looked for; it takes one argument."""

    def put(name: str, run: Callable[[argparse.Namespace], int]) -> None:
        module = ModuleType(PLAY[name].module, "Do it.\n\nAt length.")
        module.add_arguments = lambda parser: parser.add_argument("path")  # type: ignore[attr-defined]
        module.run = run  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, PLAY[name].module, module)

    return put


def raising(error: BaseException) -> Callable[[argparse.Namespace], int]:
    def run(_arguments: argparse.Namespace) -> int:
        raise error

    return run


@pytest.mark.parametrize(
    ("name", "argv"),
    [
        pytest.param("pour", ["pour", "here"], id="a-word"),
        pytest.param("log check", ["log", "check", "here"], id="in-a-group"),
    ],
)
def test_a_subcommand_gets_its_arguments_and_gives_the_exit_code(
    subcommand: Callable[..., None], name: str, argv: list[str]
) -> None:
    # given a subcommand that answers with a code
    seen = []

    def run(arguments: argparse.Namespace) -> int:
        seen.append(arguments.path)
        return 3

    subcommand(name, run)
    # when it is called
    code = main(argv, PLAY)
    # then it ran with its arguments, and its code is the command's
    assert (seen, code) == (["here"], 3)


def test_only_the_subcommand_that_is_called_is_imported(subcommand: Callable[..., None]) -> None:
    # given one command whose module can be imported, among others whose modules do not exist
    subcommand("pour", lambda _arguments: 0)
    # when it is called, then nobody misses the others
    assert main(["pour", "here"], PLAY) == 0
    with pytest.raises(ModuleNotFoundError):
        main(["log", "show", "here"], PLAY)


def test_an_error_of_ours_is_one_sentence_and_exit_code_1(
    subcommand: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    # given a subcommand that cannot do it
    subcommand("pour", raising(DataPathError("/data is locked by another nsqd")))
    # when it is called
    code = main(["pour", "/data"], PLAY)
    # then a person reads why, and no traceback
    assert (code, *capsys.readouterr()) == (1, "", "penstock: /data is locked by another nsqd\n")


def test_an_error_that_is_not_ours_is_a_bug_and_shows_its_traceback(subcommand: Callable[..., None]) -> None:
    subcommand("pour", raising(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        main(["pour", "here"], PLAY)


def test_control_c_ends_with_130_and_says_nothing(
    subcommand: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    subcommand("pour", raising(KeyboardInterrupt()))
    assert main(["pour", "here"], PLAY) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        pytest.param(["fly"], "penstock: error: argument COMMAND: invalid choice: 'fly'", id="unknown"),
        pytest.param(["log", "fly"], "penstock log: error: argument COMMAND: invalid choice: 'fly'", id="in-group"),
        pytest.param(["pour"], "penstock pour: error: the following arguments are required: path", id="argument"),
        pytest.param(["pour", "a", "b"], "penstock pour: error: unrecognized arguments: b", id="one-too-many"),
    ],
)
def test_a_wrong_call_says_what_is_wrong_and_ends_with_2(
    subcommand: Callable[..., None], capsys: pytest.CaptureFixture[str], argv: list[str], complaint: str
) -> None:
    # given the commands, when one is called wrongly
    subcommand("pour", lambda _arguments: 0)
    with pytest.raises(SystemExit) as ended:
        main(argv, PLAY)
    # then the message names the place
    assert ended.value.code == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize("argv", [[], ["log"]], ids=["nothing", "a-group"])
def test_a_call_that_says_too_little_shows_what_there_is_and_ends_with_2(
    capsys: pytest.CaptureFixture[str], argv: list[str]
) -> None:
    code = main(argv, PLAY)
    shown = capsys.readouterr()
    assert (code, shown.out) == (2, "")
    assert "check a log" in shown.err
    assert ("pour water" in shown.err) is (not argv)


@pytest.mark.parametrize(
    ("argv", "shown", "not_shown"),
    [
        pytest.param(["--help"], ["pour water", "log check", "show a log"], [], id="all"),
        pytest.param(["log", "--help"], ["check a log", "show a log"], ["pour"], id="a-group"),
        pytest.param(["pour", "--help"], ["Do it.", "path", "At length"], ["check a log"], id="one"),
    ],
)
def test_help_shows_what_can_follow(
    subcommand: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
    argv: list[str],
    shown: list[str],
    not_shown: list[str],
) -> None:
    subcommand("pour", lambda _arguments: 0)
    with pytest.raises(SystemExit) as ended:
        main(argv, PLAY)
    text = capsys.readouterr().out
    assert ended.value.code == 0
    assert [each for each in shown if each not in text] == []
    assert [each for each in not_shown if each in text] == []


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"penstock {__version__}\n")


@pytest.mark.parametrize(
    "argv", [pytest.param(["flood"], id="much"), pytest.param(["drop"], id="little"), pytest.param(["-h"], id="help")]
)
def test_a_reader_that_has_enough_is_no_error(argv: list[str]) -> None:
    # given a pipe whose reader has gone
    reader, writer = os.pipe()
    os.close(reader)
    script = (
        "import sys, types; from penstock.cli.main import Command, main\n"
        "module = types.ModuleType('water'); module.add_arguments = lambda parser: None\n"
        "module.run = lambda arguments: print('water' * (100_000 if sys.argv[1] == 'flood' else 1)) or 0\n"
        "sys.modules['water'] = module\n"
        "sys.exit(main(None, {'flood': Command('water', ''), 'drop': Command('water', '')}))\n"
    )
    # when a command prints into it
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-c", script, *argv]
    ended = subprocess.run(command, env=buffered, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    # then it ends quietly, as a program that SIGPIPE ended
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_output_that_finds_no_room_is_one_sentence_and_exit_code_1(tmp_path: Path) -> None:
    (tmp_path / "topics").mkdir()
    command = [sys.executable, "-m", "penstock.cli.main", "log", "verify", str(tmp_path)]
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert (ended.returncode, ended.stderr) == (1, b"penstock: output: No space left on device\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_of_penstock_shows_its_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*name.split(), "--help"])
    assert ended.value.code == 0
    assert f"usage: penstock {name}" in capsys.readouterr().out
