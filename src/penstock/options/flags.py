"""The command line, read as Go's flag package reads it: `-flag` is `--flag`, a bool never takes the next word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from penstock.errors import BadFlag

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from penstock.options.kinds import Kind

HELP: Final = ("help", "h")


def read_flags(kinds: Mapping[str, Kind[Any]], argv: Sequence[str]) -> dict[str, Any]:
    """The value of each flag that is given; the last one counts, or all of them where the kind holds many.

    Who asks for help gets nothing but {"help": True}, whatever comes behind it.
    """
    found: dict[str, Any] = {}
    words = iter(argv)
    for word in words:
        if word == "--":
            _end(words)
            break
        name, given, text = _split(word, _bare(kinds, found))
        if name in HELP:
            return {"help": True}
        if name not in kinds:
            raise BadFlag(f"there is no flag --{name}{did_you_mean(name, kinds, '--')}")
        kind = kinds[name]
        if not given:
            text = "true" if kind.bare else _next(words, name)
        value = _value(kind, name, text)
        found[name] = found.pop(name, ()) + value if kind.many else value
    return found


def did_you_mean(name: str, known: Mapping[str, object], prefix: str = "") -> str:
    """A hint to add behind a name that is not known; empty when none is near."""
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=1)
    return f"; did you mean {prefix}{near[0]}?" if near else ""


def _bare(kinds: Mapping[str, Kind[Any]], found: dict[str, Any]) -> str:
    """The last flag, if it is one that does not take the next word."""
    last = next(reversed(found), "")
    return last if last and kinds[last].bare else ""


def _split(word: str, bare: str) -> tuple[str, bool, str]:
    """A flag's name, whether it comes with a value, and the value."""
    if len(word) < 2 or word[0] != "-":
        # Go stops here and drops all that follows without a word: a data path, say
        hint = f"; a value for --{bare} is written --{bare}={word}" if bare else ""
        raise BadFlag(f"{word!r} is not a flag{hint}")
    name, given, text = word.removeprefix("-").removeprefix("-").partition("=")
    if not name or name[0] == "-":
        raise BadFlag(f"{word!r} is not a flag")
    return name, bool(given), text


def _next(words: Iterator[str], name: str) -> str:
    text = next(words, None)
    if text is None:
        raise BadFlag(f"--{name} needs a value")
    return text


def _end(words: Iterator[str]) -> None:
    if (word := next(words, None)) is not None:
        raise BadFlag(f"{word!r} stands behind the flags, where nothing may stand")


def _value(kind: Kind[Any], name: str, text: str) -> Any:
    try:
        return kind.parse(text)
    except ValueError as error:
        raise BadFlag(f"--{name}: {error}") from None
