# cython: annotation_typing=False
"""An answer that is given later, with no task: what waits for the end of a turn or for a flush. Knows no connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.http.response import Response


class Asker:
    """Who waits for an answer."""

    def hear(self, response: Response) -> None:
        """It is known now."""
        raise NotImplementedError


class Later:
    """A handler returns it; whoever knows the answer calls `answer`, once, be it before the handler has returned."""

    __slots__ = ("_asker", "known")

    def __init__(self) -> None:
        self.known: Response | None = None
        self._asker: Asker | None = None

    def answer(self, response: Response) -> None:
        self.known = response
        asker, self._asker = self._asker, None
        if asker is not None:
            asker.hear(response)

    def then(self, asker: Asker) -> None:
        """Whom to tell; not to be asked for when it is `known` already."""
        self._asker = asker
