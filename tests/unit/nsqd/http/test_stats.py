"""/stats: slices, and lines and numbers as nsqd's."""

from __future__ import annotations

import asyncio
import gc
import time

import pytest

from penstock.nsqd.http import slices, stats_text
from penstock.nsqd.http.garbage import Garbage, _percentile
from penstock.nsqd.meters import Histogram

S = 10**9


def test_long_work_lets_others_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0]
    monkeypatch.setattr(time, "monotonic_ns", lambda: clock[0])
    turns: list[str] = []
    taken = Histogram()

    async def work() -> bytes:
        out = slices.Slices(taken)
        for item in "abc\u00e9":
            turns.append(item)
            out.write(item)
            clock[0] += slices.SLICE // 2 + 1
            await out.pause()
        return out.whole()

    async def both() -> bytes:
        task = asyncio.ensure_future(work())
        await asyncio.sleep(0)
        turns.append("others")
        return await task

    assert asyncio.run(both()) == "abc\u00e9".encode()
    assert turns == ["a", "b", "others", "c", "\u00e9"]
    assert (sum(taken.counts), taken.total) == (2, 4 * (slices.SLICE // 2 + 1))


@pytest.mark.parametrize(
    ("count", "percent", "expected"),
    [(0, 100, 0), (1, 95, 1), (100, 100, 100), (100, 99, 99), (100, 95, 95), (3, 99, 3)],
)
def test_percentiles(count: int, percent: int, expected: int) -> None:
    assert _percentile(percent, list(range(1, count + 1))) == expected


def test_pauses_of_the_collector_are_measured() -> None:
    garbage = Garbage()
    try:
        before = garbage.memory()
        gc.collect()
        after = garbage.memory()
    finally:
        gc.callbacks.remove(garbage._collecting)
    assert after["gc_total_runs"] > before["gc_total_runs"]
    assert after["gc_pause_usec_100"] > 0
    assert after["heap_in_use_bytes"] > 1 << 20


ROW = {
    "topic_name": "t", "channel_name": "c", "depth": 1, "backend_depth": 2, "message_count": 3, "paused": False,
    "in_flight_count": 4, "deferred_count": 5, "requeue_count": 6, "timeout_count": 7,
    "e2e_processing_latency": {"count": 0, "percentiles": None},
}  # fmt: skip
CLIENT = {
    "version": "V2", "hostname": "h", "remote_address": "[::1]:77", "user_agent": "u", "state": 3,
    "in_flight_count": 1, "ready_count": 2, "finish_count": 3, "requeue_count": 4, "message_count": 5, "connect_ts": 10,
}  # fmt: skip


def test_lines_are_those_of_an_original_nsqd() -> None:
    assert stats_text.topic(ROW) == "\n   [t              ] depth: 1     be-depth: 2     msgs: 3        e2e%: \n"
    assert stats_text.topic(ROW | {"paused": True}).startswith("\n*P [t  ")
    assert stats_text.channel(ROW) == (
        "      [c                        ] depth: 1     be-depth: 2     inflt: 4    def: 5    re-q: 6     "
        "timeout: 7     msgs: 3        e2e%: \n"
    )
    slow = [{"quantile": 1, "value": value} for value in (648_817_894, 1_000_000_001, 1000, 1001, 0)]
    text = stats_text.channel(ROW | {"e2e_processing_latency": {"count": 1, "percentiles": slow}})
    assert text.endswith(" e2e%: 648.8ms, 1.0s, 1000.0ns, 1.0us, 0.0ns\n")
    assert stats_text.client("  ", CLIENT, 75 * S) == (
        "  [V2 h:77 u               ] state: 3 inflt: 1    rdy: 2    fin: 3        re-q: 4        msgs: 5        "
        "connected: 1m5s\n"
    )
    counts = [{"topic": "a", "count": 1}, {"topic": "b", "count": 2}]
    assert stats_text.client("", CLIENT | {"pub_counts": counts}, 10 * S) == (
        "[V2 h:77 u               ] msgs: 3        topics: a=1,b=2 connected: 0s\n"
    )


@pytest.mark.parametrize(
    ("zone", "expected"), [("UTC0", "1970-01-01T00:00:10Z"), ("XYZ-5:30", "1970-01-01T05:30:10+05:30")]
)
def test_times_are_written_with_their_zone(monkeypatch: pytest.MonkeyPatch, zone: str, expected: str) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    head = stats_text.head("OK", 10 * S, 12 * S, None, any_topics=False)
    monkeypatch.undo()
    time.tzset()
    assert f"\nstart_time {expected}\nuptime 2s\n\nHealth: OK\n\nTopics: None\n" in head
