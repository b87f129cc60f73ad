"""What the notes of a timetable's bucket say: which of its entries stand in the topic's log. Changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.log.timetable.bucket import parse
from penstock.log.timetable.run import unpack
from penstock.log.tools.looking import Run, damage_in, names, stretches
from penstock.protocol.batch import header

if TYPE_CHECKING:
    from penstock.log.files import Files
    from penstock.log.index import Gap
    from penstock.log.tools.store import Store

NOTES_SALT: Final = 0x6D6F7665


def note_files(files: Files, store: Store) -> list[str]:
    """The bucket's files of notes."""
    found = (name for name in names(files, store.directory)[0] if name.startswith(store.prefix))
    return [f"{store.directory}/{name}" for name in found if (parts := parse(name)) and parts[2] == "moved"]


def moved(files: Files, store: Store) -> tuple[set[int], list[tuple[str, Gap]]]:
    """The numbers of the entries that are noted as moved, and what of the notes is damaged."""
    numbers: set[int] = set()
    gaps: list[tuple[str, Gap]] = []
    for path in note_files(files, store):
        for stretch in stretches(files, path, 0, store.seed ^ NOTES_SALT):
            if isinstance(stretch, Run):
                at = 0
                while at < len(stretch.data):
                    head = header(stretch.data, at)
                    numbers.update(unpack(head.key)[1])
                    at = head.end
            elif gap := damage_in(stretch):
                gaps.append((path, gap))
    return numbers, gaps
