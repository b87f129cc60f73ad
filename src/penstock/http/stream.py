"""A body that is sent block by block, none asked for before those before it were taken. Knows no connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from penstock.http.response import Piece


async def send(
    blocks: AsyncIterator[Piece],
    length: int | None,
    *,
    chunked: bool,
    write: Callable[[Piece], None],
    taken: Callable[[], Awaitable[None]],
) -> None:
    """Write all blocks, waiting for each to be `taken`; ValueError when they are not as long as was said."""
    sent = 0
    try:
        async for block in blocks:
            if not block:  # an empty chunk would be the last
                continue
            sent += len(block)
            if length is not None and sent > length:
                raise ValueError(f"a body of {length} bytes goes on beyond them")
            if chunked:
                write(b"%x\r\n" % len(block))
            write(block)
            if chunked:
                write(b"\r\n")
            await taken()
    finally:
        close = getattr(blocks, "aclose", None)
        if close is not None:
            await close()
    if length is not None and sent < length:
        raise ValueError(f"a body of {length} bytes ended after {sent}")
    if chunked:
        write(b"0\r\n\r\n")
