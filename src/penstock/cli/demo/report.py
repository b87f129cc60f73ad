"""What the demo found: lines as they come, and whether all adds up."""

from __future__ import annotations


class Report:
    """`good` until something does not add up."""

    def __init__(self) -> None:
        self.good = True

    def say(self, step: str, text: str) -> None:
        print(f"{step:10}{text}", flush=True)

    def check(self, step: str, what: str, found: object, expected: object) -> None:
        """A number that has to match another one."""
        shown = f"{found:,}" if isinstance(found, int) else str(found)
        if found == expected:
            self.say(step, f"{what}: {shown}, as it should be")
        else:
            self.good = False
            self.say(step, f"{what}: {shown}, AND NOT {expected}")

    def end(self) -> int:
        """The exit code."""
        print("all of it adds up" if self.good else "THIS IS NOT AS IT SHOULD BE", flush=True)
        return 0 if self.good else 1
