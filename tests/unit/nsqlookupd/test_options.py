from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from penstock.daemon.logging import Level
from penstock.errors import BadOption
from penstock.nsqlookupd.options import NSQLOOKUPD, Options
from penstock.options import duration, load, options_of
from penstock.options.page import markdown

ROOT = Path(__file__).parents[3]

# flag, key in the config file, default: as in NSQ
NSQ: list[tuple[str, str, Any]] = [
    ("log-level", "log_level", Level.INFO),
    ("log-prefix", "log_prefix", "[nsqlookupd] "),
    ("tcp-address", "tcp_address", "0.0.0.0:4160"),
    ("http-address", "http_address", "0.0.0.0:4161"),
    ("broadcast-address", "broadcast_address", socket.gethostname()),
    ("inactive-producer-timeout", "inactive_producer_timeout", duration("300s")),
    ("tombstone-lifetime", "tombstone_lifetime", duration("45s")),
]

EXAMPLE = """\
log_level = "info"
tcp_address = "0.0.0.0:4160"
http_address = "0.0.0.0:4161"
broadcast_address = ""
inactive_producer_timeout = "300s"
tombstone_lifetime = "45s"
"""


@pytest.mark.parametrize(("flag", "key", "default"), NSQ, ids=[flag for flag, _, _ in NSQ])
def test_each_option_of_nsq_has_its_flag_key_and_default(flag: str, key: str, default: Any) -> None:
    (row,) = [row for row in options_of(Options) if row.flag == flag]
    assert row.key == key
    assert getattr(Options(), row.field) == default


def test_every_other_option_is_marked_as_ours() -> None:
    ours = {row.flag for row in options_of(Options) if row.ours or row.deprecated}
    assert {row.flag for row in options_of(Options)} == ours | {flag for flag, _, _ in NSQ}
    assert ours == {
        "verbose", "debug-http", "https-address",
        "tls-cert", "tls-key", "tls-root-ca-file", "tls-client-auth-policy", "tls-required", "tls-min-version",
        "http-token-file", "max-connections", "max-connections-per-address", "max-client-memory",
    }  # fmt: skip


def test_nsq_s_example_config_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "nsqlookupd.cfg"
    file.write_text(EXAMPLE)
    options, notes = load(NSQLOOKUPD, [f"--config={file}"])
    assert notes == []
    assert options.broadcast_address == ""
    assert options.tombstone_lifetime == duration("45s")


@pytest.mark.parametrize("flag", ["--tcp-address=", "--http-address=", "--tombstone-lifetime=-1s"])
def test_what_it_cannot_work_with_is_refused_at_the_start(flag: str) -> None:
    with pytest.raises(BadOption, match=f"^{flag.partition('=')[0]}: "):
        load(NSQLOOKUPD, [flag])


def test_the_page_in_the_docs_is_the_one_that_the_table_makes() -> None:
    assert (ROOT / "docs" / "nsqlookupd-flags.md").read_text() == markdown(NSQLOOKUPD), "run `make docs`"
