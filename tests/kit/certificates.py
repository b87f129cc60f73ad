"""Certificates for tests, as files: of an authority that is made for each run, and of strangers."""

from __future__ import annotations

import datetime
import ssl
from typing import TYPE_CHECKING, NamedTuple

import trustme

if TYPE_CHECKING:
    from pathlib import Path

LONG_AGO = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
ECDSA = trustme.KeyType.ECDSA


class Pair(NamedTuple):
    """Paths of a certificate and its key."""

    cert: str
    key: str


class Authority:
    """Signs what is asked of it; everything lies below `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._ca = trustme.CA(key_type=ECDSA)
        self.file = str(folder / "ca.pem")
        self._ca.cert_pem.write_to_path(self.file)

    def pair(self, name: str, *more: str, expired: bool = False, common_name: str | None = None) -> Pair:
        """For a host of these names."""
        until = LONG_AGO + datetime.timedelta(days=1) if expired else None
        leaf = self._ca.issue_cert(
            name,
            *more,
            common_name=common_name or name,
            not_before=LONG_AGO if expired else None,
            not_after=until,
            key_type=ECDSA,
        )
        pair = Pair(*(str(self._folder / f"{name}.{end}") for end in ("pem", "key")))
        leaf.private_key_pem.write_to_path(pair.key)
        with open(pair.cert, "wb") as cert:
            cert.writelines(part.bytes() for part in leaf.cert_chain_pems)
        return pair

    def client(self, pair: Pair | None = None) -> ssl.SSLContext:
        """Trusts what this authority signs, and shows the pair."""
        context = ssl.create_default_context(cafile=self.file)
        if pair is not None:
            context.load_cert_chain(*pair)
        return context
