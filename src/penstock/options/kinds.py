"""What values options have: how one is read from a flag, how from the config file, and how it is written.

`parse` and `take` raise ValueError with a sentence about the value; who asked adds the name of the option.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from penstock.options.duration import Duration, as_text, duration

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")

LARGEST: Final = (1 << 63) - 1
TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")  # Go's words, and no others
FALSE: Final = ("0", "f", "F", "false", "FALSE", "False")


class Kind(Generic[T]):
    """`bare`: the flag may stand without a value. `many`: given again it adds to what was given before."""

    name = "string"
    bare = False
    many = False

    def parse(self, text: str) -> T:
        """The value that a flag's text says."""
        raise NotImplementedError

    def take(self, value: object) -> T:
        """The value for one that the config file holds."""
        if isinstance(value, str):
            return self.parse(value)
        raise ValueError(f"{value!r} is not of the type {self.name}")

    def show(self, value: T) -> str:
        """The value as a person would write it."""
        return str(value)

    def check(self, value: T, least: float, most: float) -> None:
        """ValueError when a value that has a size is out of these bounds."""


class Text(Kind[str]):
    def parse(self, text: str) -> str:
        return text


class Bool(Kind[bool]):
    name = "bool"
    bare = True

    def parse(self, text: str) -> bool:
        if text in TRUE or text in FALSE:
            return text in TRUE
        raise ValueError(f"{text!r} is neither true nor false")

    def take(self, value: object) -> bool:
        return value if isinstance(value, bool) else super().take(value)

    def show(self, value: bool) -> str:
        return str(value).lower()


class Int(Kind[int]):
    name = "int"

    def parse(self, text: str) -> int:
        number = _go_integer(text)
        if not -LARGEST - 1 <= number <= LARGEST:
            raise ValueError(f"{text} is no 64-bit number")
        return number

    def take(self, value: object) -> int:
        return self.parse(str(value)) if _is_number(value, int) else super().take(value)

    def check(self, value: int, least: float, most: float) -> None:
        if value < least:
            raise ValueError(f"{self.show(value)} is below {self.show(int(least))}, the least that is possible")
        if value > most:
            raise ValueError(f"{self.show(value)} is above {self.show(int(most))}, the most that is possible")


class Time(Int):
    """A duration; a bare number in the config file counts milliseconds, as in NSQ."""

    name = "duration"

    def parse(self, text: str) -> int:
        return duration(text)

    def take(self, value: object) -> int:
        return self.parse(f"{value}ms") if _is_number(value, int) else Kind.take(self, value)

    def show(self, value: int) -> str:
        return as_text(Duration(value))


class Texts(Kind[tuple[str, ...]]):
    many = True

    def parse(self, text: str) -> tuple[str, ...]:
        return (text,) if text else ()  # as where an unset variable stands behind the flag

    def take(self, value: object) -> tuple[str, ...]:
        values = value.split(",") if isinstance(value, str) else value
        if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
            raise ValueError(f"{value!r} is not a list of strings")
        return tuple(one for one in values if one)

    def show(self, value: tuple[str, ...]) -> str:
        return ",".join(value)


class Floats(Kind[tuple[float, ...]]):
    name = "float"
    many = True

    def parse(self, text: str) -> tuple[float, ...]:
        return tuple(_number(one) for one in text.split(","))

    def take(self, value: object) -> tuple[float, ...]:
        if isinstance(value, list):
            if not all(_is_number(one, (int, float)) for one in value):
                raise ValueError(f"{value!r} is not a list of numbers")
            return tuple(float(one) for one in value)
        return super().take(value)

    def show(self, value: tuple[float, ...]) -> str:
        return ",".join(map(repr, value))


class Words(Kind[T]):
    """One of a few words, in upper or lower case; the first word of a value is the one that is shown."""

    name = "word"

    def __init__(self, words: Mapping[str, T], *, bare: bool = False) -> None:
        self.words = words
        self.bare = bare

    def parse(self, text: str) -> T:
        if text.lower() in self.words:
            return self.words[text.lower()]
        raise ValueError(f"{text!r} is none of {', '.join(self.choices())}")

    def take(self, value: object) -> T:
        return self.parse(str(value)) if isinstance(value, bool) else super().take(value)

    def show(self, value: T) -> str:
        return next(word for word, meant in self.words.items() if meant == value)

    def choices(self) -> list[str]:
        return [word for word in dict.fromkeys(self.show(value) for value in self.words.values()) if word]


TEXT: Final = Text()

KINDS: Final[Mapping[str, Kind[Any]]] = {  # by the annotation of the field
    "str": TEXT,
    "bool": Bool(),
    "int": Int(),
    "Duration": Time(),
    "tuple[str, ...]": Texts(),
    "tuple[float, ...]": Floats(),
}

_INTEGER: Final = re.compile(
    r"[+-]?(?:0|[1-9][0-9]*(?:_[0-9]+)*|0[xX](?:_?[0-9a-fA-F])+|0[oO]?(?:_?[0-7])+|0[bB](?:_?[01])+)"
)


def _go_integer(text: str) -> int:
    """A number in Go's notation: decimal, or with 0x, 0o, 0b, or a plain 0 before octal digits."""
    if len(text) > 100 or not _INTEGER.fullmatch(text):
        raise ValueError(f"{text!r} is not a whole number")
    octal = re.fullmatch(r"([+-]?)0_?([0-7_]+)", text)
    return int(f"{octal[1]}0o{octal[2]}" if octal else text, 0)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None


def _is_number(value: object, kinds: type | tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool)
