"""The table of nsqlookupd's options: NSQ's, with NSQ's names and defaults, and Penstock's own."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import ClassVar, Final

from penstock.daemon.logging import LEVEL, Level
from penstock.daemon.standing import Standing
from penstock.errors import BadOption
from penstock.options import ADDRESS, Duration, Program, duration, option


@dataclass(frozen=True, kw_only=True, slots=True)
class Options(Standing):
    """What an nsqlookupd was asked to be. Durations are nanoseconds; BadOption for what cannot be."""

    OURS: ClassVar = Standing.LAST  # NSQ's nsqlookupd has no TLS

    log_level: Level = option(Level.INFO, "the least level of the lines that are logged", kind=LEVEL, heading="Log")
    log_prefix: str = option("[nsqlookupd] ", "what each log line begins with", shown="[nsqlookupd] and a space")
    verbose: bool = option(False, "nothing", deprecated="--log-level")

    tcp_address: str = option(
        "0.0.0.0:4160",
        "where nsqd connect: host:port, or the path of a unix socket",
        kind=ADDRESS,
        heading="Addresses",
    )
    http_address: str = option(
        "0.0.0.0:4161", "where HTTP clients connect: host:port, or the path of a unix socket", kind=ADDRESS
    )
    https_address: str = option(
        "0.0.0.0:4162",
        "where HTTPS clients connect, if there is a certificate: host:port; empty for no HTTPS",
        kind=ADDRESS,
        ours=True,
    )
    debug_http: bool = option(
        False, "answer /debug/pprof/ over HTTP: where threads stand, a profile of the loop", ours=True
    )
    broadcast_address: str = option(
        socket.gethostname,
        "the host that is told to nsqd, for their HTTP requests to this nsqlookupd",
        shown="the machine's host name",
    )

    inactive_producer_timeout: Duration = option(
        duration("300s"), "how long an nsqd that was not heard is still told of", heading="Producers"
    )
    tombstone_lifetime: Duration = option(
        duration("45s"), "how long an nsqd that was tombstoned for a topic is not told of, if it still has it"
    )

    def __post_init__(self) -> None:
        Standing.__post_init__(self)
        for flag, address in (("tcp-address", self.tcp_address), ("http-address", self.http_address)):
            if not address:
                raise BadOption(f"--{flag}: it must not be empty")


NSQLOOKUPD: Final = Program("nsqlookupd", "knows which nsqd has which topics, and tells consumers.", Options)
