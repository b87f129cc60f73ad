"""Memory that runs out: nsqd ends, and what it had answered is there when it starts again."""

from __future__ import annotations

import resource
from contextlib import suppress
from pathlib import Path

from tests.integration.daemon import Nsqd


def test_without_memory_it_ends_and_a_start_has_all_that_was_answered(tmp_path: Path) -> None:
    # given an nsqd that gets no more memory than it has
    nsqd = Nsqd(tmp_path)
    with nsqd.client() as client:
        client.subscribe("t", "c", 0)
        assert client.publish("t", b"first") == b"OK"
    pages = int(Path(f"/proc/{nsqd.process.pid}/statm").read_text().split()[0])
    most = pages * resource.getpagesize()
    resource.prlimit(nsqd.process.pid, resource.RLIMIT_AS, (most, most))
    # when large messages come until it ends
    answered = 1
    with suppress(OSError, EOFError), nsqd.client() as client:
        for number in range(10_000):
            answered += client.publish("t", b"%d " % number + bytes(1 << 20 >> 1)) == b"OK"
    assert nsqd.process.wait(timeout=20) == 1
    nsqd.wait_for_line("no memory is left")
    nsqd.kill()  # nothing is left to kill
    # then the next one has them all
    nsqd.start()
    assert nsqd.channel("t", "c")["depth"] >= answered
    assert nsqd.stop() == 0
