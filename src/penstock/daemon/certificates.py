"""TLS contexts from files: what a daemon shows, and what it demands of others. Knows files and no connection."""

from __future__ import annotations

import ssl
import warnings
from typing import Final, NamedTuple

from penstock.errors import BadOption
from penstock.stream.tls import reason

REQUIRE: Final = ("require", "require-verify")
OLD: Final = 0x303  # TLS 1.2: what is below has to be asked for, and OpenSSL to be talked into it


class TlsFiles(NamedTuple):
    """Paths, empty where there is none; and the numbers that TLS has for its versions."""

    cert: str = ""
    key: str = ""
    root_ca: str = ""
    policy: str = ""
    min_version: int = OLD


class Certificates:
    """The contexts for new connections: `server` (None without a certificate) and `client`.

    `reload` reads the files again; connections that are there keep what they began with.
    """

    def __init__(self, files: TlsFiles) -> None:
        """BadOption for files that cannot be used."""
        self._files = files
        self._client: ssl.SSLContext | None = None
        self.reload()

    def reload(self) -> None:
        """BadOption leaves all as it was."""
        files = self._files
        server = _server(files) if files.cert or files.key else None
        client = _client(files) if files.root_ca else None
        self.server, self._client = server, client

    @property
    def client(self) -> ssl.SSLContext:
        """Where it trusts whom the machine does, it is made when somebody asks for it: that takes a while."""
        if self._client is None:
            self._client = _client(self._files)
        return self._client


def _server(files: TlsFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION
    _set_version(context, files.min_version)
    _show(context, files)
    if files.policy in REQUIRE:
        context.verify_mode = ssl.CERT_REQUIRED
        if files.root_ca:
            _trust(context, files.root_ca)
        elif files.policy == "require":  # Python's ssl has no way to ask for a certificate and to believe any
            raise BadOption(
                "--tls-client-auth-policy=require: clients' certificates are always verified here, so it needs"
                " --tls-root-ca-file with whoever signs them (or, where they are self-signed, with themselves)"
            )
        else:
            context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
    return context


def _client(files: TlsFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _set_version(context, files.min_version)
    if files.root_ca:
        _trust(context, files.root_ca)
    else:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    if files.cert or files.key:
        _show(context, files)
    return context


def _set_version(context: ssl.SSLContext, version: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = ssl.TLSVersion(version)
    if version < OLD:
        context.set_ciphers("DEFAULT:@SECLEVEL=0")


def _show(context: ssl.SSLContext, files: TlsFiles) -> None:
    try:
        context.load_cert_chain(files.cert, files.key, password="")  # else it would ask at the terminal
    except (OSError, ValueError) as error:
        raise BadOption(f"--tls-cert {files.cert} and --tls-key {files.key} cannot be used: {_said(error)}") from None


def _trust(context: ssl.SSLContext, path: str) -> None:
    try:
        context.load_verify_locations(path)
    except (OSError, ValueError) as error:
        raise BadOption(f"--tls-root-ca-file {path} cannot be used: {_said(error)}") from None


def _said(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return reason(error) if error.reason else "no PEM, or encrypted"
    return str(getattr(error, "strerror", None) or error)
