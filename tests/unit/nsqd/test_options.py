from __future__ import annotations

import dataclasses
import socket
from pathlib import Path
from typing import Any

import pytest

from penstock.daemon.logging import Level
from penstock.daemon.standing import TlsRequired
from penstock.errors import BadOption
from penstock.nsqd.options import NSQD, Options
from penstock.options import duration, load, options_of
from penstock.options.page import help_text, markdown

ROOT = Path(__file__).parents[3]

# flag, key in the config file, default: as in NSQ
NSQ: list[tuple[str, str, Any]] = [
    ("log-level", "log_level", Level.INFO),
    ("log-prefix", "log_prefix", "[nsqd] "),
    ("tcp-address", "tcp_address", "0.0.0.0:4150"),
    ("http-address", "http_address", "0.0.0.0:4151"),
    ("https-address", "https_address", "0.0.0.0:4152"),
    ("broadcast-address", "broadcast_address", socket.gethostname()),
    ("broadcast-tcp-port", "broadcast_tcp_port", 0),
    ("broadcast-http-port", "broadcast_http_port", 0),
    ("lookupd-tcp-address", "nsqlookupd_tcp_addresses", ()),
    ("auth-http-address", "auth_http_addresses", ()),
    ("auth-http-request-method", "auth_http_request_method", "get"),
    ("http-client-connect-timeout", "http_client_connect_timeout", duration("2s")),
    ("http-client-request-timeout", "http_client_request_timeout", duration("5s")),
    ("topology-region", "topology_region", ""),
    ("topology-zone", "topology_zone", ""),
    ("data-path", "data_path", ""),
    ("mem-queue-size", "mem_queue_size", 10_000),
    ("max-bytes-per-file", "max_bytes_per_file", 104_857_600),
    ("sync-every", "sync_every", 2500),
    ("sync-timeout", "sync_timeout", duration("2s")),
    ("queue-scan-selection-count", "queue_scan_selection_count", 20),
    ("queue-scan-worker-pool-max", "queue_scan_worker_pool_max", 4),
    ("msg-timeout", "msg_timeout", duration("60s")),
    ("max-msg-timeout", "max_msg_timeout", duration("15m")),
    ("max-msg-size", "max_msg_size", 1_048_576),
    ("max-body-size", "max_body_size", 5_242_880),
    ("max-req-timeout", "max_req_timeout", duration("1h")),
    ("max-heartbeat-interval", "max_heartbeat_interval", duration("60s")),
    ("max-rdy-count", "max_rdy_count", 2500),
    ("max-output-buffer-size", "max_output_buffer_size", 65_536),
    ("max-output-buffer-timeout", "max_output_buffer_timeout", duration("30s")),
    ("min-output-buffer-timeout", "min_output_buffer_timeout", duration("25ms")),
    ("output-buffer-timeout", "output_buffer_timeout", duration("250ms")),
    ("max-channel-consumers", "max_channel_consumers", 0),
    ("statsd-address", "statsd_address", ""),
    ("statsd-prefix", "statsd_prefix", "nsq.%s"),
    ("statsd-interval", "statsd_interval", duration("60s")),
    ("statsd-mem-stats", "statsd_mem_stats", True),
    ("statsd-udp-packet-size", "statsd_udp_packet_size", 508),
    ("statsd-exclude-ephemeral", "statsd_exclude_ephemeral", False),
    ("e2e-processing-latency-percentile", "e2e_processing_latency_percentiles", ()),
    ("e2e-processing-latency-window-time", "e2e_processing_latency_window_time", duration("10m")),
    ("tls-cert", "tls_cert", ""),
    ("tls-key", "tls_key", ""),
    ("tls-client-auth-policy", "tls_client_auth_policy", ""),
    ("tls-root-ca-file", "tls_root_ca_file", ""),
    ("tls-required", "tls_required", 0),
    ("tls-min-version", "tls_min_version", 0x303),  # NSQ's is TLS 1.0, which nobody should speak any more
    ("deflate", "deflate", True),
    ("max-deflate-level", "max_deflate_level", 6),
    ("snappy", "snappy", True),
    ("enable-experiment", "enable_experiment", ()),
    ("verbose", "verbose", False),
    ("worker-id", "worker_id", False),
]
OURS: list[tuple[str, str, Any]] = [
    ("debug-http", "debug_http", False),
    ("retention-bytes", "retention_bytes", 1 << 30),
    ("retention-time", "retention_time", duration("24h")),
    ("retention-total-bytes", "retention_total_bytes", 10 << 30),
    ("min-free", "min_free", 1 << 30),
    ("reader-timeout", "reader_timeout", duration("168h")),
    ("producer-timeout", "producer_timeout", duration("720h")),
    ("auth-file", "auth_file", ""),
    ("lookupd-tls", "lookupd_tls", False),
    ("http-token-file", "http_token_file", ""),
    ("max-connections", "max_connections", 0),
    ("max-connections-per-address", "max_connections_per_address", 0),
    ("max-client-memory", "max_client_memory", 1 << 30),
]

EVERY_KEY_OF_NSQ_S_EXAMPLE = """
log_level = "info"
tcp_address = "0.0.0.0:4150"
http_address = "0.0.0.0:4151"
nsqlookupd_tcp_addresses = ["127.0.0.1:4160"]
http_client_connect_timeout = "2s"
http_client_request_timeout = "5s"
mem_queue_size = 10000
max_bytes_per_file = 104857600
sync_every = 2500
sync_timeout = "2s"
msg_timeout = "60s"
max_msg_timeout = "15m"
max_msg_size = 1024768
max_req_timeout = "1h"
max_body_size = 5123840
max_heartbeat_interval = "60s"
max_rdy_count = 2500
max_output_buffer_size = 65536
max_output_buffer_timeout = "1s"
statsd_prefix = "nsq.%s"
statsd_interval = "60s"
statsd_mem_stats = true
e2e_processing_latency_percentiles = [1.0, 0.99, 0.95]
e2e_processing_latency_window_time = "10m"
tls_cert = ""
tls_key = ""
tls_required = false
tls_min_version = ""
deflate = true
max_deflate_level = 6
snappy = true
"""
AND_THOSE_IN_ITS_COMMENTS = """
id = 515
https_address = "0.0.0.0:4152"
broadcast_address = ""
data_path = "/var/lib/nsq"
statsd_udp_packet_size = 508
tls_root_ca_file = ""
"""


@pytest.mark.parametrize(("flag", "key", "default"), [*NSQ, *OURS], ids=str)
def test_each_option_has_its_flag_its_key_and_its_default(flag: str, key: str, default: Any) -> None:
    # given the row of the flag
    row = next(row for row in options_of(Options) if row.flag == flag)
    # then it has the key, and the options have the default
    assert row.key == key
    assert getattr(Options(), row.field) == default


def test_there_are_no_other_options_and_ours_are_marked() -> None:
    rows = options_of(Options)
    assert {row.flag for row in rows} == {flag for flag, _, _ in [*NSQ, *OURS]} | {"node-id"}
    assert {row.flag for row in rows if row.ours} == {flag for flag, _, _ in OURS}
    assert len({row.key for row in rows}) == len({row.flag for row in rows}) == len(rows)


def test_the_default_of_each_option_can_be_written_as_its_flag() -> None:
    for row in options_of(Options):
        if row.default not in ((), dataclasses.MISSING):
            assert row.kind.parse(row.kind.show(row.default)) == row.default, row.flag


def test_the_node_id_is_made_of_the_host_name_as_in_nsq(monkeypatch: pytest.MonkeyPatch) -> None:
    # given a host on which an original nsqd logs "ID: 617"
    monkeypatch.setattr(socket, "gethostname", lambda: "vm")
    # then ours has the same
    assert Options().node_id == 617


@pytest.mark.parametrize("more", ["", AND_THOSE_IN_ITS_COMMENTS], ids=["as-it-is", "all-of-it"])
def test_nsq_s_example_config_is_taken(tmp_path: Path, more: str) -> None:
    # given a file with its keys and values
    file = tmp_path / "nsqd.cfg"
    file.write_text(EVERY_KEY_OF_NSQ_S_EXAMPLE + more)
    # when it is loaded
    options, notes = load(NSQD, [f"--config={file}"])
    # then it says what it says there
    assert options.max_msg_size == 1_024_768
    assert options.max_output_buffer_timeout == duration("1s")
    assert options.e2e_processing_latency_percentiles == (1.0, 0.99, 0.95)
    assert options.tls_required is TlsRequired.NO
    assert options.tls_min_version == 0x303  # an empty word is the default
    assert options.nsqlookupd_tcp_addresses == ("127.0.0.1:4160",)
    assert notes == []


@pytest.mark.parametrize(
    "flag",
    [
        "--enable-experiment=topology-aware-consumption",
    ],
)
def test_a_feature_that_is_not_built_is_refused_when_it_is_asked_for(flag: str) -> None:
    with pytest.raises(BadOption, match=r"^--[a-z-]+: this version has no .* yet$"):
        load(NSQD, flag.split())


@pytest.mark.parametrize(
    "flag",
    [
        "--tls-cert=",
        "--tls-required=false",
        "--tls-min-version=TLS1.2",
        "--statsd-interval=1s",
        "--auth-http-request-method=post",
        "--deflate",
        "--snappy",
        "--max-deflate-level=9",
        "--https-address=127.0.0.1:0",
        "--queue-scan-worker-pool-max=8",
        "--node-id=1023",
    ],
)
def test_a_flag_that_asks_for_nothing_is_taken_without_a_word(flag: str) -> None:
    assert load(NSQD, [flag])[1] == []


@pytest.mark.parametrize(
    ("flag", "why"),
    [
        ("--node-id=1024", "--node-id: 1024 is above 1023"),
        ("--node-id=-1", "--node-id: -1 is below 0"),
        ("--max-deflate-level=0", "--max-deflate-level: 0 is below 1"),
        ("--max-deflate-level=10", "--max-deflate-level: 10 is above 9"),
        ("--broadcast-tcp-port=65536", "--broadcast-tcp-port: 65536 is above 65535"),
        ("--sync-timeout=0", "--sync-timeout: 0s is below 1ns"),
        ("--msg-timeout=-1s", "--msg-timeout: -1s is below 0s"),
        ("--tcp-address=", "--tcp-address: it must not be empty"),
        ("--statsd-address=/tmp/s", "--statsd-address: '/tmp/s' has no port"),
        ("--statsd-address=h:", "--statsd-address: 'h:' has no port"),
        ("--tcp-address=127.0.0.1", "--tcp-address: '127.0.0.1' is neither host:port"),
        ("--lookupd-tcp-address=127.0.0.1", "--lookupd-tcp-address: '127.0.0.1' is neither host:port"),
        ("--log-level=warning", "--log-level: 'warning' is none of debug, info, warn, error, fatal"),
        ("--tls-min-version=ssl3.0", "'ssl3.0' is none of tls1.0, tls1.1, tls1.2, tls1.3"),
        ("--tls-required", "TLS cannot be required of clients without --tls-cert and --tls-key"),
        ("--tls-required=TCP-HTTPS", "TLS cannot be required of clients without --tls-cert and --tls-key"),
        ("--tls-client-auth-policy=require", "TLS cannot be required of clients without --tls-cert and --tls-key"),
        ("--tls-client-auth-policy=request", "'request' is none of require, require-verify"),
        ("--auth-file=a --auth-http-address=b:1", "clients are known by one of them"),
        ("--tls-required=perhaps", "'perhaps' is none of true, false, tcp-https"),
        ("--auth-http-request-method=put", "'put' is none of get, post"),
        ("--e2e-processing-latency-percentile=1,0", "must be over 0 and at most 1, not 0"),
        ("--e2e-processing-latency-percentile=1.5", "must be over 0 and at most 1, not 1.5"),
        ("--e2e-processing-latency-percentile=nan", "must be over 0 and at most 1, not nan"),
    ],
)
def test_a_value_that_nsqd_cannot_work_with_is_refused_at_the_start(flag: str, why: str) -> None:
    with pytest.raises(BadOption) as refusal:
        load(NSQD, flag.split())
    assert why in str(refusal.value)


@pytest.mark.parametrize(("word", "level"), [("debug", 1), ("INFO", 2), ("Warn", 3), ("error", 4), ("fatal", 5)])
def test_the_log_level_is_a_word_in_any_case_and_a_number_of_nsq_s(word: str, level: int) -> None:
    assert load(NSQD, [f"--log-level={word}"])[0].log_level == level


@pytest.mark.parametrize(
    ("word", "expected"),
    [("true", 2), ("T", 2), ("1", 2), ("tcp-https", 1), ("false", 0), ("F", 0), ("0", 0)],
)
def test_whether_tls_is_required_is_a_word_and_a_number_of_nsq_s(word: str, expected: int) -> None:
    row = next(row for row in options_of(Options) if row.flag == "tls-required")
    assert row.kind.parse(word) == expected


def test_help_fits_a_terminal() -> None:
    assert max(map(len, help_text(NSQD).splitlines())) <= 100


def test_the_page_in_the_docs_is_the_one_that_the_table_makes() -> None:
    assert (ROOT / "docs" / "nsqd-flags.md").read_text() == markdown(NSQD), "run `make docs`"
