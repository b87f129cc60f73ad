"""What Spark's tasks do, against a real nsqd that is closed to strangers. Without Spark."""

from __future__ import annotations

import json
import socket
import struct
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="pyspark (extra `spark`) is not installed")

from pyspark.sql.types import BinaryType, StructType

from penstock.errors import NodeFailed
from penstock.spark.source import batch_reader
from tests.integration.daemon import Nsqd, Nsqlookupd
from tests.integration.http_client import Http
from tests.kit.certificates import Authority

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOKEN = "kW3xr0Tq8mFh2u"
BODIES = [b"%d" % number * 20_000 for number in range(400)]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def closed(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nsqd]:
    """Wants TLS, also of its HTTP, and a token."""
    folder = tmp_path_factory.mktemp("nsqd")
    tokens = folder / "tokens"
    tokens.write_text(f"spark {TOKEN} subscribe:t\n")
    pair = authority.pair("localhost")
    (folder / "data").mkdir()
    flags = [f"--tls-cert={pair.cert}", f"--tls-key={pair.key}", "--tls-required=tcp-https"]
    nsqd = Nsqd(folder / "data", *flags)
    publish(nsqd)
    nsqd.stop()
    flags[-1] = "--tls-required"
    nsqd = Nsqd(folder / "data", *flags, f"--http-token-file={tokens}")
    yield nsqd
    nsqd.stop()
    nsqd.assert_calm()


def publish(nsqd: Nsqd) -> None:
    web = Http(nsqd.http)
    for first in range(0, len(BODIES), 20):
        assert web.post("/mpub?topic=t", b"\n".join(BODIES[first : first + 20])).body == b"OK"
    web.close()


def read(closed: Nsqd, authority: Authority, **options: str) -> list[bytes]:
    return rows(
        {
            "nsqd": f"localhost:{closed.http}",
            "topic": "t",
            "tlsCaFile": authority.file,
            "fetchRetries": "0",
            **options,
        }
    )


def rows(given: dict[str, str]) -> list[bytes]:
    """The bodies that a batch reads."""
    reader = batch_reader.reader(given, StructType().add("body", BinaryType()))
    found: list[bytes] = []
    for partition in reader.partitions():
        batches: Any = reader.read(partition)
        found += [body for batch in batches for body in batch["body"].to_pylist()]
    return found


def test_nsqlookupd_names_the_nodes(tmp_path: Path) -> None:
    # given a node that nsqlookupd is told of
    (tmp_path / "data").mkdir()
    nsqd, lookupd = Nsqd(tmp_path / "data"), Nsqlookupd()
    publish(nsqd)
    known = {
        "broadcast_address": "127.0.0.1",
        "hostname": "here",
        "tcp_port": nsqd.tcp,
        "http_port": nsqd.http,
        "version": "1.3.0",
    }
    body = json.dumps(known).encode()
    told = socket.create_connection(("127.0.0.1", lookupd.tcp), timeout=20)
    told.sendall(b"  V1IDENTIFY\n" + struct.pack(">I", len(body)) + body + b"REGISTER t\nPING\n")
    with told.makefile("rb") as answers:
        answered = b""
        while answered.count(b"OK") < 2:
            answered += answers.read1()
        # then a batch finds it there
        assert rows({"lookupd": f"127.0.0.1:{lookupd.http}", "topic": "t"}) == BODIES
    told.close()
    assert (nsqd.stop(), lookupd.stop()) == (0, 0)


def test_tls_and_a_token_open_the_log(closed: Nsqd, authority: Authority) -> None:
    # given the plain port's address: nsqd answers there which one takes TLS
    found = read(closed, authority, token=TOKEN)
    # then all comes over that, in chunks that are no batches' size
    assert found == BODIES


def test_the_environment_has_what_options_do_not(
    closed: Nsqd, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_TOKEN", TOKEN)
    monkeypatch.setenv("PENSTOCK_TLS_CA_FILE", authority.file)
    assert read(closed, authority, tlsCaFile="", nsqd=f"https://localhost:{closed.https}") == BODIES


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "answers UNAUTHORIZED"),
        ({"token": "guessed-wrongly"}, "answers "),
        ({"token": TOKEN, "tlsCaFile": ""}, "cannot be reached: its certificate is not good: "),
        ({"token": TOKEN, "topic": "u"}, "answers "),
    ],
)
def test_strangers_are_told_why_and_no_secret_is(
    closed: Nsqd, authority: Authority, options: dict[str, str], why: str
) -> None:
    with pytest.raises(NodeFailed) as refused:
        read(closed, authority, **options)
    assert why in str(refused.value)
    assert TOKEN not in str(refused.value)
    assert "guessed" not in str(refused.value)
