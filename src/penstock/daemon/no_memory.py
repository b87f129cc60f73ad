"""When memory runs out: a process that could not finish what it had begun does not go on as if it had.

Half a turn may have taken messages out of a queue and given them to nobody. So it ends at once, as by `kill -9`, and
the next start finds all that was answered.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    import asyncio

_LINE: Final = b"FATAL: no memory is left: this process ends; a start finds all that was answered\n"


def end() -> NoReturn:
    os.write(2, _LINE)
    os._exit(1)


def watch(loop: asyncio.AbstractEventLoop) -> None:
    """Whatever raises MemoryError in a callback of the loop ends the process."""
    loop.set_exception_handler(_failed)


def _failed(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    if isinstance(context.get("exception"), MemoryError):
        end()
    loop.default_exception_handler(context)
