"""One nsqlookupd: a connection to it, another one when that ends, and its HTTP API. Knows asyncio; no topic."""

from __future__ import annotations

import asyncio
import json
import random
import ssl
import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote_plus

from penstock.asking import ask
from penstock.errors import RegisteringFailed
from penstock.nsqd.lookup.conversation import Conversation
from penstock.options import endpoint
from penstock.stream.tls import reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from penstock.daemon.logging import Logger
    from penstock.nsqd.lookup.conversation import About

SHORTEST: Final = 0.1  # seconds between connections at first, doubled with each that fails,
LONGEST: Final = 5.0  # up to here
AT_ONCE: Final = 16  # requests over HTTP: a thousand new topics do not open a thousand connections


class Link:
    """From `start` to `stop` it is connected, or about to be."""

    def __init__(
        self,
        address: str,
        said: bytes,
        everything: Callable[[], Iterable[tuple[str, str]]],
        logger: Logger,
        *,
        connect_timeout: float,
        context: Callable[[], ssl.SSLContext] | None = None,
        token: str = "",
    ) -> None:
        """With a `context`, which is asked for each time, it is spoken to over TLS; `token` is for its HTTP API."""
        self.address = address
        self.answered = 0  # when it last answered what it was asked over HTTP (monotonic ns)
        self._said = said
        self._everything = everything
        self._logger = logger
        self._connect_timeout = connect_timeout
        self._context = context
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._about: About | None = None  # also of a connection that ended
        self._tried = asyncio.Event()  # to be told what there is: it is known, or it was not there
        self._talk: Conversation | None = None
        self._writer: asyncio.StreamWriter
        self._patience: asyncio.Timeout
        self._task: asyncio.Task[None] | None = None
        self._slots = asyncio.Semaphore(AT_ONCE)

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    def stop(self) -> None:
        """The connection ends, and what was registered with it."""
        self._tried.set()
        if self._task is not None:
            self._task.cancel()

    @property
    def registered(self) -> bool:
        return self._talk is not None and self._talk.registered

    def tell(self, command: bytes) -> None:
        """It is told at once; not where it is not there, for it is told everything when it is."""
        if self._talk is None or not (data := self._talk.tell(command, time.monotonic_ns())):
            return
        self._logger.info("LOOKUPD(%s): %s", self.address, command.decode().rstrip())
        self._writer.write(data)
        self._wait_for(self._talk)

    # --- one connection after the other

    async def _run(self) -> None:
        failures = 0
        while True:
            begun = time.monotonic()
            try:
                await self._converse()
            except (OSError, ValueError, RegisteringFailed) as error:
                self._failed(error, aloud=failures * SHORTEST < LONGEST)
            finally:
                self._talk = None
            self._tried.set()
            failures = 0 if time.monotonic() - begun > LONGEST else failures + 1
            pause = min(LONGEST, SHORTEST * 2 ** min(failures, 10))
            await asyncio.sleep(pause * random.uniform(0.5, 1))

    def _failed(self, error: Exception, *, aloud: bool) -> None:
        log = self._logger.error if aloud else self._logger.debug  # one that is away for long fills no log
        why = reason(error) if isinstance(error, ssl.SSLError) else str(error)
        log("LOOKUPD(%s): %s", self.address, why or "does not answer")

    async def _converse(self) -> None:
        """Until it ends, which is an error."""
        self._logger.debug("LOOKUP connecting to %s", self.address)
        reader, self._writer = await self._connect()
        try:
            self._talk = talk = Conversation(self._said, self._everything)
            self._writer.write(talk.begin(time.monotonic_ns()))
            while True:
                data = await self._read(reader, talk)
                now = time.monotonic_ns()
                was_registered = talk.registered
                self._writer.write(talk.tick(now) if data is None else talk.received(data, now))
                if talk.registered and not was_registered:
                    self._known(talk)
        finally:
            self._writer.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        where = endpoint(self.address)
        context = None if self._context is None else self._context()
        async with asyncio.timeout(self._connect_timeout):
            if where.path:
                return await asyncio.open_unix_connection(where.path)
            return await asyncio.open_connection(where.host or "127.0.0.1", where.port, ssl=context)

    async def _read(self, reader: asyncio.StreamReader, talk: Conversation) -> bytes | None:
        """What it says; None when it is time for `tick`."""
        try:
            async with asyncio.timeout(None) as self._patience:
                self._wait_for(talk)
                if not (data := await reader.read(1 << 16)):
                    raise RegisteringFailed("the connection ended")
                return data
        except TimeoutError:
            if not self._patience.expired():  # the kernel's, of a connection that is dead
                raise
            return None

    def _wait_for(self, talk: Conversation) -> None:
        if not self._patience.expired():
            left = (talk.next_time - time.monotonic_ns()) / 1e9
            self._patience.reschedule(asyncio.get_running_loop().time() + left)

    def _known(self, talk: Conversation) -> None:
        self._about = about = talk.about
        self._tried.set()
        if about is not None:
            self._logger.info("LOOKUPD(%s): peer info %s", self.address, about._asdict())
            if not about.broadcast_address:
                self._logger.error("LOOKUPD(%s): no broadcast address", self.address)

    # --- over HTTP

    async def channels(self, topic: str) -> list[str]:
        """Those that it knows of the topic; OSError or ValueError where it does not say."""
        await self._tried.wait()
        about = self._about
        port = 0 if about is None else about.http_port if self._context is None else about.https_port
        if about is None or not about.broadcast_address or port <= 0:
            raise ConnectionError("not available")
        context = None if self._context is None else self._context()
        target = f"/channels?topic={quote_plus(topic)}"
        async with self._slots:
            answer = await ask(about.broadcast_address, port, target, context=context, headers=self._headers)
        self.answered = time.monotonic_ns()
        if answer.status != 200:
            raise ConnectionError(f"answered {answer.status}")
        return _names(json.loads(answer.body))


def _names(answer: Any) -> list[str]:
    names = answer.get("channels") if isinstance(answer, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("no list of channels")
    return names
