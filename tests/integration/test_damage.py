"""A node on a damaged disk: it starts, says what is bad, and delivers everything else; the tools get it out as well."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.daemon import Nsqd

COUNT = 200
AT_ONCE = 10  # messages in a batch, so that so many go with one bad byte
BODIES = [b"message %04d" % number for number in range(COUNT)]
BAD = 7  # the batch that is hurt
LOST = set(BODIES[BAD * AT_ONCE : (BAD + 1) * AT_ONCE])


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """The data path of a node that was stopped before one byte of its log went bad."""
    nsqd = Nsqd(tmp_path)
    with nsqd.client() as client:
        client.subscribe("orders", "billing", 0)
        for first in range(0, COUNT, AT_ONCE):
            assert client.publish("orders", *BODIES[first : first + AT_ONCE]) == b"OK"
    assert nsqd.stop() == 0
    (log,) = tmp_path.glob("topics/orders@*/*.log")
    data = bytearray(log.read_bytes())
    data[data.index(BODIES[BAD * AT_ONCE + 3])] ^= 1
    log.write_bytes(data)
    return tmp_path


def test_a_consumer_gets_all_but_what_is_damaged(damaged: Path) -> None:
    nsqd = Nsqd(damaged)
    try:
        with nsqd.client() as client:
            client.subscribe("orders", "billing", COUNT)
            got = [client.message() for _ in range(COUNT - AT_ONCE)]
            for message in got:
                client.finish(message)
        assert [message.body for message in got] == [body for body in BODIES if body not in LOST]
    finally:
        nsqd.stop()
    nsqd.assert_calm()
    (told,) = [line for line in nsqd.log if "DISK: damage" in line]
    assert f"offsets [{BAD * AT_ONCE}, {(BAD + 1) * AT_ONCE}) are lost" in told


def test_the_tools_say_what_is_bad_and_print_all_else(damaged: Path) -> None:
    def penstock(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "penstock.cli.main", "log", *arguments, str(damaged)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    verified = penstock("verify")
    assert verified.returncode == 1
    assert f"offsets {BAD * AT_ONCE} to {BAD * AT_ONCE + AT_ONCE - 1} are lost" in verified.stdout
    dumped = penstock("dump", "--json")
    bodies = {json.loads(line)["body"].encode() for line in dumped.stdout.splitlines()}
    assert bodies == set(BODIES) - LOST
    salvaged = penstock("dump", "--salvage", "--raw")  # also what no CRC vouches for
    assert len(LOST & set(salvaged.stdout.encode().splitlines())) == AT_ONCE - 1
