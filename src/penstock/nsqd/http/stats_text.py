"""`/stats` as people read it, column by column as nsqd writes it. Knows rows of `stats`, and no node."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from penstock.options import Duration
from penstock.options.duration import as_text
from penstock.options.load import version_line

if TYPE_CHECKING:
    from collections.abc import Mapping

_S: Final = 10**9


def head(health: str, started: int, now: int, memory: Mapping[str, int] | None, *, any_topics: bool) -> str:
    """What stands before the topics; times are ns of the wall."""
    lines = [
        version_line("nsqd"),
        f"start_time {_rfc3339(started // _S)}",
        f"uptime {as_text(Duration(now - started))}",
        f"\nHealth: {health}",
    ]
    if memory is not None:
        lines.append("\nMemory:")
        lines += [f"   {name:<25}\t{value}" for name, value in memory.items()]
    lines.append("\nTopics:" if any_topics else "\nTopics: None\n")
    return "\n".join(lines)


def topic(row: Mapping[str, Any]) -> str:
    return (
        f"\n{_paused(row)}[{row['topic_name']:<15}] depth: {row['depth']:<5} be-depth: {row['backend_depth']:<5}"
        f" msgs: {row['message_count']:<8} e2e%: {_latency(row)}\n"
    )


def channel(row: Mapping[str, Any]) -> str:
    return (
        f"   {_paused(row)}[{row['channel_name']:<25}] depth: {row['depth']:<5} be-depth: {row['backend_depth']:<5}"
        f" inflt: {row['in_flight_count']:<4} def: {row['deferred_count']:<4} re-q: {row['requeue_count']:<5}"
        f" timeout: {row['timeout_count']:<5} msgs: {row['message_count']:<8} e2e%: {_latency(row)}\n"
    )


def client(indent: str, row: Mapping[str, Any], now: int) -> str:
    port = row["remote_address"].rpartition(":")[2]
    who = f"{row['hostname']}:{port} {row['user_agent']}"
    connected = as_text(Duration(max(0, now // _S - row["connect_ts"]) * _S))
    counts = row.get("pub_counts")
    if counts:
        topics = ",".join(f"{each['topic']}={each['count']}" for each in counts)
        did = f"msgs: {sum(each['count'] for each in counts):<8} topics: {topics}"
    else:
        did = (
            f"state: {row['state']} inflt: {row['in_flight_count']:<4} rdy: {row['ready_count']:<4}"
            f" fin: {row['finish_count']:<8} re-q: {row['requeue_count']:<8} msgs: {row['message_count']:<8}"
        )
    return f"{indent}[{row['version']} {who:<21}] {did} connected: {connected}\n"


def _paused(row: Mapping[str, Any]) -> str:
    return "*P " if row["paused"] else "   "


def _latency(row: Mapping[str, Any]) -> str:
    return ", ".join(_human(each["value"]) for each in row["e2e_processing_latency"]["percentiles"] or ())


def _human(ns: int) -> str:
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if ns > size:
            return f"{ns / size:.1f}{unit}"
    return f"{ns:.1f}ns"


def _rfc3339(seconds: int) -> str:
    at = time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(seconds))
    return at[:-5] + "Z" if at.endswith("+0000") else f"{at[:-2]}:{at[-2:]}"
