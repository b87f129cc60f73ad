"""The options that a daemon stands on an open port with: TLS, tokens, limits. They come behind its own."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, Final

from penstock.errors import BadOption
from penstock.options import Words, option
from penstock.options.kinds import FALSE, TRUE


class TlsRequired(IntEnum):
    """NSQ's numbers, which its HTTP API shows."""

    NO = 0
    EXCEPT_HTTP = 1
    YES = 2


TLS_REQUIRED: Final = Words(
    {
        **{word.lower(): TlsRequired.YES for word in reversed(TRUE)},  # so that `true` is the first, and shown
        **{word.lower(): TlsRequired.NO for word in reversed(FALSE)},
        "tcp-https": TlsRequired.EXCEPT_HTTP,
    },
    bare=True,
)
TLS_VERSION: Final = Words({"tls1.0": 0x301, "tls1.1": 0x302, "tls1.2": 0x303, "tls1.3": 0x304, "": 0x303})
POLICY: Final = Words({word: word for word in ("require", "require-verify", "")})


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """BadOption for what cannot be."""

    LAST: ClassVar[frozenset[str]]

    tls_cert: str = option(
        "", "the path of the certificate, and of those between it and its root; read again on SIGHUP", heading="TLS"
    )
    tls_key: str = option("", "the path of its private key, which is not encrypted")
    tls_client_auth_policy: str = option(
        "",
        "what clients must show: require or require-verify, which are the same here, a certificate that"
        " --tls-root-ca-file signs; TLS is required then, if --tls-required does not leave HTTP out",
        kind=POLICY,
        shown="nothing",
    )
    tls_root_ca_file: str = option(
        "",
        "the path of the certificates that sign those of clients, and of servers that are asked",
        shown="for servers, those that this machine trusts",
    )
    tls_required: TlsRequired = option(
        TlsRequired.NO, "whether clients must use TLS; tcp-https leaves plain HTTP open", kind=TLS_REQUIRED
    )
    tls_min_version: int = option(0x303, "the lowest version of TLS that is spoken", kind=TLS_VERSION)

    http_token_file: str = option(
        "",
        "the path of tokens, one of which each HTTP request must show, and of what they allow: see"
        " docs/security.md; read again on SIGHUP. Tokens may also stand in the variable PENSTOCK_HTTP_TOKENS",
        heading="Tokens",
        ours=True,
        shown="no request needs a token",
    )

    max_connections: int = option(
        0, "how many connections there may be, over all ports; with 0, any number", heading="Limits", ours=True
    )
    max_connections_per_address: int = option(0, "how many from one address; with 0, any number", ours=True)
    max_client_memory: int = option(
        1 << 30,
        "bytes that all clients together may make the process hold: what they have not sent whole, and what they do"
        " not take. The one that holds most is dropped when it is more; with 0, no limit",
        ours=True,
    )

    def __post_init__(self) -> None:
        if self.tls_client_auth_policy and self.tls_required is TlsRequired.NO:
            object.__setattr__(self, "tls_required", TlsRequired.YES)
        if self.tls_required is not TlsRequired.NO and not (self.tls_cert or self.tls_key):
            raise BadOption("TLS cannot be required of clients without --tls-cert and --tls-key")


Standing.LAST = frozenset(Standing.__annotations__) - {"LAST"}
