"""Writes the tables of figures in README.md and docs/performance.md from the newest file in bench/results/."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PLACE = re.compile(r"(<!-- figures: .*? -->\n).*?(<!-- figures end -->)", re.DOTALL)


def newest() -> Path | None:
    """The results of the last day that has some."""
    return max((ROOT / "bench" / "results").glob("*.json"), default=None, key=lambda path: (path.name[:10], path))


def against_the_peer(results: dict[str, Any]) -> str:
    """How many times as fast as the other nsqd, and in brackets the slowest and the fastest round."""
    lines = ["| work | the original keeps it in | times as fast | wanted | CPU a message |", "|---|---|---|---|---|"]
    for row in results["rows"]:
        work, peer, kind = row["name"].partition("; peer: ")
        if not peer:
            continue
        figures, rounds = row["figures"], [1 / ratio for ratio in row["ratios"]]
        share = figures["CPU a message, to the peer's"]
        wanted = f"{figures['wanted']:g}" if figures["wanted"] else ""
        lines.append(
            f"| {work} | {'memory' if kind == 'memory' else 'files'} | {figures['times as fast']:.2f} "
            f"[{min(rounds):.2f}, {max(rounds):.2f}] | {wanted} | {share:.2f} |"
        )
    return "\n".join(lines)


def against_the_machine(results: dict[str, Any]) -> str:
    """Each other row, and what it was measured beside."""
    lines = ["| work | Penstock | beside | ratio in time | wanted |", "|---|---|---|---|---|"]
    for row in results["rows"]:
        if "; peer: " not in row["name"]:
            ratio = "" if row["ratio"] is None else f"{row['ratio']:.2f}"
            lines.append(f"| {row['name']} | {row['ours']} | {row['limit']} | {ratio} | {row['target']} |")
    return "\n".join(lines)


def filled(page: str, results: dict[str, Any]) -> str:
    """The page with its places for figures filled anew."""
    facts = results["facts"]
    machine = f"{facts['cores']} cores ({facts['cpu']}), {facts['kernel'].split('-')[0]}, {facts['file system']}"
    below = f"\n\n{machine}, {facts['python']}; {facts['date']}, commit {facts['commit'].rstrip('+')}.\n"
    tables = {"peer": against_the_peer, "machine": against_the_machine}

    def fill(place: re.Match[str]) -> str:
        kind = place[1].split()[2]
        return place[1] + "\n" + tables[kind](results) + below + "\n" + place[2]

    return PLACE.sub(fill, page)


def main() -> None:
    if (found := newest()) is None:
        return
    results = json.loads(found.read_text(encoding="utf-8"))
    for name in ("README.md", "docs/performance.md"):
        path = ROOT / name
        path.write_text(filled(path.read_text(encoding="utf-8"), results), encoding="utf-8")


if __name__ == "__main__":
    main()
