"""Pushes to statsd, as a statsd daemon receives them."""

from __future__ import annotations

import re
import socket
from pathlib import Path

from tests.integration.daemon import Nsqd
from tests.integration.http_client import Http

LINE = re.compile(rb"nsq\.[^.:]+\.(topic\.[^:]+|mem\.[a-z0-9_]+):([0-9]+)\|[cg]")


def test_statsd_is_told_in_packets_of_whole_lines(tmp_path: Path) -> None:
    # given somebody who listens
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as statsd:
        statsd.bind(("127.0.0.1", 0))
        statsd.settimeout(10)
        address = f"127.0.0.1:{statsd.getsockname()[1]}"
        nsqd = Nsqd(tmp_path, f"--statsd-address={address}", "--statsd-interval=50ms", "--statsd-udp-packet-size=200")
        web = Http(nsqd.http)
        web.post("/channel/create?topic=t&channel=c")
        web.post("/mpub?topic=t", b"a\nb")
        web.close()
        # when pushes come, then every packet is whole lines and no longer than was asked for
        seen: dict[bytes, int] = {}
        while not (seen.get(b"topic.t.message_count") and b"mem.gc_runs" in seen):
            packet = statsd.recv(65536)
            assert len(packet) <= 200
            assert packet.endswith(b"\n")
            for line in packet.splitlines():
                found = LINE.fullmatch(line)
                assert found, line
                seen[found[1]] = seen.get(found[1], 0) + int(found[2])
        assert seen[b"topic.t.message_count"] == 2
        assert nsqd.stop() == 0
        nsqd.assert_calm()


def test_a_statsd_that_cannot_be_found_is_told_of_in_the_log(tmp_path: Path) -> None:
    nsqd = Nsqd(tmp_path, "--statsd-address=nowhere.invalid:8125", "--statsd-interval=10ms")
    nsqd.wait_for_line("ERROR: STATSD: nowhere.invalid:8125: ")
    assert nsqd.stop() == 0
    nsqd.assert_calm()
