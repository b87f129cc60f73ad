"""Which folders an import and an export may be given. Knows paths only."""

from __future__ import annotations

import os

from penstock.errors import DataPathError


def refuse_inside(new: str, old: str) -> None:
    """What is read must not be changed: nothing is made in it."""
    place = os.path.realpath(old)
    if os.path.commonpath([place, os.path.realpath(new)]) == place:
        raise DataPathError(f"{new} lies in {old}, in which nothing is to be changed: name a folder outside")
