"""What the demo found: lines as they come, and in the end which numbers have to match, and whether they do."""

from __future__ import annotations

from typing import NamedTuple

from penstock.cli.log.showing import aligned


class Match(NamedTuple):
    """Two numbers that have to be one."""

    expected: int
    of: str
    found: int
    what: str

    @property
    def good(self) -> bool:
        return self.found == self.expected


class Report:
    def __init__(self) -> None:
        self._matches: list[Match] = []
        self._failed = False

    @property
    def good(self) -> bool:
        """Nothing failed, and what had to match does."""
        return not self._failed and all(each.good for each in self._matches)

    def say(self, step: str, *lines: str) -> None:
        for number, line in enumerate(lines):
            print(f"{'' if number else step:10}{line}".rstrip(), flush=True)

    def fail(self) -> None:
        """It ended before its end; why has been said."""
        self._failed = True

    def match(self, of: str, expected: int, what: str, found: int) -> None:
        """Found where as many were expected."""
        self._matches.append(Match(expected, of, found, what))

    def end(self, seconds: float) -> int:
        """The exit code."""
        rows = [
            (f"{each.expected:,}", each.of, f"{each.found:,}", each.what, "ok" if each.good else "NOT THE SAME")
            for each in self._matches
        ]
        print("\nwhat has to be the same:" if rows else "")
        for line in aligned(rows, right=(0, 2)) if rows else ():
            print(f"  {line}")
        print(f"all of it adds up, in {seconds:.0f} s" if self.good else "THIS IS NOT AS IT SHOULD BE", flush=True)
        return 0 if self.good else 1
