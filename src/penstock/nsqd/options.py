"""The table of nsqd's options: NSQ's, with NSQ's names and defaults, and Penstock's own."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Final

from penstock.daemon.logging import LEVEL, Level
from penstock.daemon.standing import Standing
from penstock.errors import BadOption
from penstock.options import ADDRESS, Duration, Program, Words, duration, endpoint, option

GIB: Final = 1 << 30


METHOD: Final = Words({"get": "get", "post": "post"})


def default_node_id() -> int:
    """NSQ's: made of the host name."""
    from hashlib import md5
    from zlib import crc32

    return crc32(md5(socket.gethostname().encode(), usedforsecurity=False).digest()) % 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Options(Standing):
    """What an nsqd was asked to be. Durations are nanoseconds, sizes bytes; BadOption for what cannot be."""

    log_level: Level = option(Level.INFO, "the least level of the lines that are logged", kind=LEVEL, heading="Log")
    log_prefix: str = option("[nsqd] ", "what each log line begins with", shown="[nsqd] and a space")
    verbose: bool = option(False, "nothing", deprecated="--log-level")

    tcp_address: str = option(
        "0.0.0.0:4150",
        "where TCP clients connect: host:port, or the path of a unix socket",
        kind=ADDRESS,
        heading="Addresses",
    )
    http_address: str = option(
        "0.0.0.0:4151",
        "where HTTP clients connect: host:port, or the path of a unix socket; empty for no HTTP",
        kind=ADDRESS,
    )
    https_address: str = option(
        "0.0.0.0:4152",
        "where HTTPS clients connect, if there is a certificate: host:port; empty for no HTTPS",
        kind=ADDRESS,
    )
    debug_http: bool = option(
        False, "answer /debug/pprof/ over HTTP: where threads stand, a profile of the loop", ours=True
    )
    broadcast_address: str = option(
        socket.gethostname,
        "the host that is told to nsqlookupd and to those who ask, for clients to connect to",
        shown="the machine's host name",
    )
    broadcast_tcp_port: int = option(
        0, "the TCP port that is told with it", most=65535, shown="the one that is listened on"
    )
    broadcast_http_port: int = option(
        0, "the HTTP port that is told with it", most=65535, shown="the one that is listened on"
    )
    nsqlookupd_tcp_addresses: tuple[str, ...] = option(
        (),
        "the TCP address of an nsqlookupd to register topics and channels with",
        flag="lookupd-tcp-address",
    )
    lookupd_tls: bool = option(
        False,
        "speak TLS to every nsqlookupd, also over HTTP, and show --tls-cert where it is asked for; it needs a"
        " certificate that --tls-root-ca-file or this machine trusts. A token for its HTTP API stands in the"
        " variable PENSTOCK_LOOKUPD_TOKEN",
        ours=True,
    )
    http_client_connect_timeout: Duration = option(
        duration("2s"), "how long an outgoing HTTP request may take to connect"
    )
    http_client_request_timeout: Duration = option(duration("5s"), "how long it may take as a whole")
    topology_region: str = option("", "the region that this node is in: one or more zones")
    topology_zone: str = option("", "the zone that this node is in: what fails together")

    data_path: str = option("", "the folder that holds all data", shown="the working directory", heading="Storage")
    mem_queue_size: int = option(
        10_000,
        "how many messages an ephemeral topic or channel holds; durable ones are held on disk, whatever this says",
    )
    max_bytes_per_file: int = option(100 << 20, "the size at which a segment of a topic's log is closed")
    sync_every: int = option(
        2500,
        "flush a topic to the device after so many messages, a hundred times a second at most; with 1, publishes are "
        "answered when they are flushed",
    )
    sync_timeout: Duration = option(
        duration("2s"), "flush to the device, and write down what consumers did, after this time", least=1
    )
    retention_bytes: int = option(
        GIB, "how much of what all have consumed a topic keeps, to be read again; with 0, none", ours=True
    )
    retention_time: Duration = option(duration("24h"), "how long a topic keeps it; with 0, not at all", ours=True)
    retention_total_bytes: int = option(10 * GIB, "how much of it all topics together keep", ours=True)
    min_free: int = option(GIB, "what is consumed is deleted earlier when the disk has less than this free", ours=True)
    reader_timeout: Duration = option(
        duration("168h"),
        "when a reader (of a Spark query, say) that nobody renewed is forgotten; with 0, never",
        ours=True,
    )
    producer_timeout: Duration = option(
        duration("720h"),
        "when a producer that publishes under a key is forgotten, after its last publish; with 0, never",
        ours=True,
    )

    msg_timeout: Duration = option(
        duration("60s"),
        "how long a consumer may take to finish a message before it is delivered again",
        heading="Messages",
    )
    max_msg_timeout: Duration = option(
        duration("15m"), "the most that a consumer may ask for, and that TOUCH can prolong it to"
    )
    max_msg_size: int = option(1 << 20, "the largest message")
    max_body_size: int = option(5 << 20, "the largest body of a command, such as an MPUB")
    max_req_timeout: Duration = option(
        duration("1h"), "the longest that a message may be deferred, by REQ or when it is published"
    )

    max_heartbeat_interval: Duration = option(
        duration("60s"), "the longest time between heartbeats that a client may ask for", heading="Clients"
    )
    max_rdy_count: int = option(2500, "the highest RDY that a client may send")
    max_output_buffer_size: int = option(64 << 10, "the largest output buffer that a client may ask for")
    max_output_buffer_timeout: Duration = option(
        duration("30s"), "the longest time between flushes of it that a client may ask for"
    )
    min_output_buffer_timeout: Duration = option(duration("25ms"), "the shortest such time")
    output_buffer_timeout: Duration = option(duration("250ms"), "that time, for clients that ask for none")
    max_channel_consumers: int = option(0, "how many consumers a channel may have; with 0, any number")

    statsd_address: str = option(
        "", "host:port of the statsd daemon that gets the counters, by UDP", kind=ADDRESS, heading="Metrics"
    )
    statsd_prefix: str = option("nsq.%s", "what each name in statsd begins with, where %s is the host")
    statsd_interval: Duration = option(duration("60s"), "how often statsd gets them", least=1)
    statsd_mem_stats: bool = option(True, "whether statsd gets the memory statistics as well")
    statsd_udp_packet_size: int = option(508, "the largest UDP packet to statsd", least=1)
    statsd_exclude_ephemeral: bool = option(False, "leave ephemeral topics and channels out of what statsd gets")
    e2e_processing_latency_percentiles: tuple[float, ...] = option(
        (),
        "a percentile to keep of the time from publish to finish, over 0 and up to 1; or several, with commas",
        flag="e2e-processing-latency-percentile",
        shown="none",
    )
    e2e_processing_latency_window_time: Duration = option(
        duration("10m"), "the time that those percentiles look back on"
    )

    auth_http_addresses: tuple[str, ...] = option(
        (),
        "host:port or URL of a server to ask what a client may do",
        flag="auth-http-address",
        heading="Authorization",
    )
    auth_http_request_method: str = option("get", "the HTTP method to ask it with", kind=METHOD)

    auth_file: str = option(
        "",
        "the path of tokens that clients may show by AUTH, and of what they allow, in place of a server: see"
        " docs/security.md; read again on SIGHUP",
        ours=True,
    )

    deflate: bool = option(True, "offer deflate to clients", heading="Compression")
    max_deflate_level: int = option(6, "the highest level of deflate that a client may ask for", least=1, most=9)
    snappy: bool = option(True, "offer snappy to clients")

    node_id: int = option(
        default_node_id,
        "a number from 0 to 1023; checked, and needed for nothing",
        key="id",
        most=1023,
        shown="made of the host name",
        heading="Without a use here",
    )
    worker_id: bool = option(False, "nothing", deprecated="--node-id")
    queue_scan_worker_pool_max: int = option(4, "nothing: there is one heap of deadlines, which nobody scans")
    queue_scan_selection_count: int = option(20, "nothing, for the same reason")
    enable_experiment: tuple[str, ...] = option(
        (), "an experimental feature of NSQ: topology-aware-consumption", needs="experiments"
    )

    @property
    def latency_window(self) -> int:
        """ns that percentiles of end-to-end latency look back on; 0 where none are asked for."""
        window = self.e2e_processing_latency_window_time
        return max(1, window) if self.e2e_processing_latency_percentiles else 0

    def __post_init__(self) -> None:
        Standing.__post_init__(self)
        if not self.tcp_address:
            raise BadOption("--tcp-address: it must not be empty")
        for address in self.nsqlookupd_tcp_addresses:
            try:
                endpoint(address)
            except ValueError as error:
                raise BadOption(f"--lookupd-tcp-address: {error}") from None
        if self.statsd_address and not endpoint(self.statsd_address).port:
            raise BadOption(f"--statsd-address: {self.statsd_address!r} has no port")
        if self.auth_file and self.auth_http_addresses:
            raise BadOption("--auth-file and --auth-http-address: clients are known by one of them")
        for percentile in self.e2e_processing_latency_percentiles:
            if not 0 < percentile <= 1:
                raise BadOption(f"a percentile of end-to-end latency must be over 0 and at most 1, not {percentile:g}")


NSQD: Final = Program("nsqd", "takes messages, keeps them on disk, and delivers them to consumers.", Options)
