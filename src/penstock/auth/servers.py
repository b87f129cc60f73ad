"""NSQ's auth servers: any of them is asked, and the next one where it does not answer. Knows HTTP; no connection."""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING, Final

from penstock.auth.answer import Answer, query, read
from penstock.errors import AuthServerError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Sequence

    from penstock.auth.permissions import Who

LARGEST: Final = 1 << 20  # bytes of an answer
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
        import httpx

        method, url, headers, content = query(address, self._method, who)
        timeout = httpx.Timeout(self._request_timeout, connect=self._connect_timeout)
        try:
            async with (
                httpx.AsyncClient(verify=self._context(), timeout=timeout, trust_env=False) as client,
                client.stream(method, url, headers=headers, content=content) as answer,
            ):
                if answer.status_code != 200:
                    raise AuthServerError(f"it answers {answer.status_code}")
                body = b""
                async for part in answer.aiter_bytes():
                    body += part
                    if len(body) > LARGEST:
                        raise AuthServerError("its answer has no end")
                return body
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise AuthServerError(f"{type(error).__name__}: {error}".rstrip(": ")) from None
