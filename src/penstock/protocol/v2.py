"""The states of an NSQ V2 connection, and which command is allowed in which. Knows no bytes and no broker.

    INIT --SUB--> SUBSCRIBED --CLS--> CLOSING

What a table does not name is allowed, or changes nothing.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

MAGIC: Final = b"  V2"  # a connection's first bytes


class State(IntEnum):
    """The numbers are nsqd's: `/stats` shows them."""

    INIT = 0
    SUBSCRIBED = 3
    CLOSING = 4

    def after(self, command: str) -> State:
        """The state once a command that is allowed in this one has succeeded."""
        return LEADS_TO.get(command, self)


_SUBSCRIBED: Final = frozenset({State.SUBSCRIBED})
_CONSUMING: Final = frozenset({State.SUBSCRIBED, State.CLOSING})
_INIT: Final = frozenset({State.INIT})

ALLOWED_IN: Final[Mapping[str, frozenset[State]]] = {
    "IDENTIFY": _INIT,
    "AUTH": _INIT,
    "SUB": _INIT,
    "RDY": _CONSUMING,  # in CLOSING it has no effect
    "FIN": _CONSUMING,
    "REQ": _CONSUMING,
    "TOUCH": _CONSUMING,
    "CLS": _SUBSCRIBED,
}
LEADS_TO: Final[Mapping[str, State]] = {"SUB": State.SUBSCRIBED, "CLS": State.CLOSING}


def allows(state: State, command: str) -> bool:
    return command not in ALLOWED_IN or state in ALLOWED_IN[command]
