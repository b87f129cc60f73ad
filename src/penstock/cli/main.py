"""The `penstock` command: finds the subcommand, runs it, and turns what went wrong into a sentence and an exit code.

A subcommand is a module with two functions; its docstring says what it does, the first line in short:

    def add_arguments(parser: argparse.ArgumentParser) -> None
    def run(arguments: argparse.Namespace) -> int          the exit code

It is imported only when it is called: `penstock` starts as fast as what it is asked to do.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock import __version__
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FAILED: Final = 1  # argparse exits with 2 where the call itself is wrong
INTERRUPTED: Final = 130  # what a shell reports of a program that SIGINT or SIGPIPE ended
PIPE_CLOSED: Final = 141


class Command(NamedTuple):
    """Where a subcommand lives, and its line in the overview."""

    module: str
    help: str


COMMANDS: Final[Mapping[str, Command]] = {
    "up": Command("penstock.cli.up.command", "run nsqlookupd and nsqd together, to try and to develop"),
    "archive": Command("penstock.cli.jobs.archive", "topics to Parquet or JSON lines, on Spark"),
    "replay": Command("penstock.cli.jobs.replay", "an archive back to topics, on Spark"),
    "transform": Command("penstock.cli.jobs.transform", "topics to a topic or to files, by SQL or Python, on Spark"),
    "sql": Command("penstock.cli.jobs.sql", "SQL over what topics retain, and over archives"),
    "import": Command("penstock.cli.import_", "take over the data folder of an original nsqd"),
    "export": Command("penstock.cli.export", "write a data folder for an original nsqd"),
    "bench": Command("penstock.cli.bench", "put a load on a server and measure it"),
    "log verify": Command("penstock.cli.log.verify", "check every CRC, and say what is damaged"),
    "log dump": Command("penstock.cli.log.dump", "print messages, or journal entries"),
    "log repair": Command("penstock.cli.log.repair", "make indexes and other small files again"),
    "log backup": Command("penstock.cli.log.backup", "copy the data path of a running node"),
}


def main(argv: Sequence[str] | None = None, commands: Mapping[str, Command] = COMMANDS) -> int:
    """Run what `argv` asks for; the exit code. `commands` go by their words, as in "log verify"."""
    try:
        try:
            return _run(list(sys.argv[1:] if argv is None else argv), commands)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader has enough, as `head` does
        _silence_stdout()
        return PIPE_CLOSED
    except OSError as error:  # what it prints goes to a full disk, or it may not read something
        _silence_stdout()
        print(f"penstock: {error.filename or 'output'}: {error.strerror}", file=sys.stderr)
        return FAILED


def _run(argv: list[str], commands: Mapping[str, Command]) -> int:
    try:
        return _call(argv, commands)
    except PenstockError as error:
        print(f"penstock: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED


def _call(argv: list[str], commands: Mapping[str, Command]) -> int:
    words = _command_words(argv, commands)
    name = " ".join(words)
    if name not in commands:
        overview = _overview(words, commands)
        if len(words) == len(argv):
            overview.print_help(sys.stderr)
        else:
            overview.parse_args(argv[len(words) :])  # shows help or the version, or says what is wrong
        return 2
    module = import_module(commands[name].module)
    parser = argparse.ArgumentParser(
        prog=f"penstock {name}",
        description=(module.__doc__ or "").strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add_arguments(parser)
    code: int = module.run(parser.parse_args(argv[len(words) :]))
    return code


def _command_words(argv: Sequence[str], commands: Mapping[str, Command]) -> list[str]:
    """The first arguments, as far as they name a command or a group of them."""
    words: list[str] = []
    for word in argv:
        if not _below([*words, word], commands):
            break
        words.append(word)
    return words


def _below(words: Sequence[str], commands: Mapping[str, Command]) -> dict[str, str]:
    """The commands that begin with these words: the rest of the name, and the help."""
    start = "".join(f"{word} " for word in words)
    return {
        f"{name} ".removeprefix(start).strip(): command.help
        for name, command in commands.items()
        if f"{name} ".startswith(start)
    }


def _overview(words: Sequence[str], commands: Mapping[str, Command]) -> argparse.ArgumentParser:
    """A parser that knows the names of the commands below `words`, and nothing about their arguments."""
    parser = argparse.ArgumentParser(
        prog=" ".join(["penstock", *words]),
        description=None if words else "What Penstock has beside its daemons nsqd and nsqlookupd.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if not words:
        parser.add_argument("--version", action="version", version=f"penstock {__version__}")
    listed = parser.add_subparsers(metavar="COMMAND", required=True, title="commands")
    for name, help_ in _below(words, commands).items():
        listed.add_parser(name, help=help_)
    return parser


def _silence_stdout() -> None:
    """Let Python's own flush at exit go nowhere, instead of failing once more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


if __name__ == "__main__":
    sys.exit(main())
