"""What protects a daemon's ports, put together from its options, and read again when it is asked to be."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, Final

from penstock.auth.file import TokenFile
from penstock.daemon.certificates import Certificates, TlsFiles
from penstock.daemon.http_guard import HttpGuard
from penstock.errors import BadOption
from penstock.stream.doors import Burden, Doors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.daemon.logging import Logger
    from penstock.daemon.standing import Standing

TOKENS: Final = "PENSTOCK_HTTP_TOKENS"


class Security:
    """`certificates` and `tokens` are those of the moment; `doors` and `guard` are None where all are let in."""

    def __init__(self, options: Standing, logger: Logger, environment: Mapping[str, str] = os.environ) -> None:
        """BadOption for files that cannot be used."""
        self._logger = logger
        self.certificates = Certificates(
            TlsFiles(
                options.tls_cert,
                options.tls_key,
                options.tls_root_ca_file,
                options.tls_client_auth_policy,
                options.tls_min_version,
            )
        )
        self.burden = Burden(options.max_client_memory)
        self.doors: Doors | None = None
        if options.max_connections or options.max_connections_per_address:
            self.doors = Doors(options.max_connections, options.max_connections_per_address, self._tell_of_doors)
        self.guard: HttpGuard | None = None
        self._reloads: list[Callable[[], None]] = [self.certificates.reload]
        path, text = options.http_token_file, environment.get(TOKENS, "")
        if path or text:
            self.guard = HttpGuard(self.token_file(path, text))

    def token_file(self, path: str, text: str = "") -> TokenFile:
        """Which is read again with all else."""
        file = TokenFile(path, text, TOKENS, warn=self._warn)
        self.on_reload(file.reload)
        return file

    def on_reload(self, reload: Callable[[], None]) -> None:
        self._reloads.append(reload)

    def reload(self) -> None:
        """What cannot be used leaves what was, and is told of."""
        bad = 0
        for reload in self._reloads:
            try:
                reload()
            except BadOption as error:
                bad += 1
                self._logger.error("RELOAD: %s; what was stays", error)
        if not bad:
            self._logger.info("RELOAD: certificates and tokens were read again")

    def reload_on_hangup(self) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self.reload)

    def _warn(self, text: str) -> None:
        self._logger.warn("%s", text)

    def _tell_of_doors(self, text: str) -> None:
        self._logger.warn("LIMITS: %s", text)
