"""Who knows what clients may do, as the options say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.auth.servers import Servers

if TYPE_CHECKING:
    from penstock.auth.permissions import Authority
    from penstock.daemon.security import Security
    from penstock.nsqd.options import Options


def authority(options: Options, security: Security) -> Authority | None:
    """None where everybody may do everything."""
    if options.auth_file:
        return security.token_file(options.auth_file)
    if options.auth_http_addresses:
        return Servers(
            options.auth_http_addresses,
            options.auth_http_request_method,
            lambda: security.certificates.client,
            connect_timeout=options.http_client_connect_timeout,
            request_timeout=options.http_client_request_timeout,
        )
    return None
