"""NSQ's auth servers: any of them is asked, and the next one where it does not answer. Knows HTTP; no connection."""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from penstock.asking import ask
from penstock.auth.answer import Answer, query, read
from penstock.errors import AuthServerError
from penstock.stream.tls import reason

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.auth.permissions import Who

_S: Final = 1e9


class Servers:
    """Those at these addresses; `context` says whose certificates are trusted, and is asked for each time."""

    def __init__(
        self,
        addresses: Sequence[str],
        method: str,
        context: Callable[[], ssl.SSLContext],
        *,
        connect_timeout: int,
        request_timeout: int,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._addresses = addresses
        self._method = method
        self._context = context
        self._connect_timeout = connect_timeout / _S
        self._request_timeout = request_timeout / _S
        self._clock = clock

    async def ask(self, who: Who) -> Answer:
        wrong = []
        for address in random.sample(self._addresses, len(self._addresses)):
            try:
                async with asyncio.timeout(self._request_timeout):
                    body = await self._body(address, who)
                return read(body, self._clock())
            except (AuthServerError, TimeoutError) as error:
                wrong.append(f"failed to auth against {address} - {str(error) or 'no answer in time'}")
        raise AuthServerError("; ".join(wrong))

    async def _body(self, address: str, who: Who) -> bytes:
        url, headers, body = query(address, self._method, who)
        try:
            where = urlsplit(url)
            secure = where.scheme == "https"
            status, _, answer = await ask(
                where.hostname or "",
                where.port or (443 if secure else 80),
                f"{where.path or '/'}?{where.query}" if where.query else where.path or "/",
                context=self._context() if secure else None,
                headers=headers,
                body=body,
                connect_timeout=self._connect_timeout,
            )
        except ssl.SSLError as error:
            raise AuthServerError(reason(error)) from None
        except (OSError, ValueError) as error:  # it is not there, or the address is none
            raise AuthServerError(str(error) or "no answer in time") from None
        if status != 200:
            raise AuthServerError(f"it answers {status}")
        return answer
