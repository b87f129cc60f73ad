"""An answer that is given later, with no task: what waits for the end of a turn or for a flush. Knows no connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.http.response import Response


class Later:
    """A handler returns it; whoever knows the answer calls `answer`, once, be it before the handler has returned."""

    __slots__ = ("_tell", "known")

    def __init__(self) -> None:
        self.known: Response | None = None
        self._tell: Callable[[Response], None] | None = None

    def answer(self, response: Response) -> None:
        self.known = response
        tell, self._tell = self._tell, None
        if tell is not None:
            tell(response)

    def then(self, tell: Callable[[Response], None]) -> None:
        """Whom to tell; not to be asked for when it is `known` already."""
        self._tell = tell
