"""`python -m bench`: the table, as it comes about, and its figures as JSON in bench/results/."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench import appending, clients, deferring, memory, peers, reading, recovering, serving, sparking, streams, topics
from bench.facts import facts
from bench.load import Load, quick

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bench.measure import Row

PARTS = {
    "append": appending.rows,
    "defer": deferring.rows,
    "read": reading.rows,
    "recover": recovering.rows,
    "topics": topics.rows,
    "memory": memory.rows,
    "serve": serving.rows,
    "peer": peers.rows,
    "streams": streams.rows,
    "spark": sparking.rows,
    "client": clients.rows,
}
RESULTS: Final = Path(__file__).parent / "results"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is asked for; 1 where a target is not met, unless it was only `--quick`."""
    arguments = _parser().parse_args(argv)
    load = quick(arguments.directory) if arguments.quick else Load(arguments.directory, seconds=arguments.seconds)
    known = facts(arguments.directory)
    print(", ".join(f"{name}: {fact}" for name, fact in known.items()))
    print(_line("", "Penstock", "this machine", "ratio (of the rounds)", "target"))
    found: list[Row] = []
    for part in arguments.parts or PARTS:
        for row in PARTS[part](load):
            print(_shown(row), flush=True)
            found.append(row)
    if target := _target(arguments, known):
        target.parent.mkdir(exist_ok=True)
        target.write_text(json.dumps({"facts": known, "rows": [_plain(row) for row in found]}, indent=1) + "\n")
    missed = [row.name for row in found if row.met is False]
    print(f"{len(missed)} of {sum(row.met is not None for row in found)} targets missed")
    return 1 if missed and not arguments.quick else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description="How fast Penstock is on this machine.")
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help=f"some of {', '.join(PARTS)}; without, all")
    parser.add_argument("--quick", action="store_true", help="hardly any load: to see that everything runs")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each load on a server (%(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="instead of one in bench/results/")
    parser.add_argument(
        "--directory", default=tempfile.gettempdir(), help="where files are made for it: on the disk that matters"
    )
    return parser


def _target(arguments: argparse.Namespace, known: Mapping[str, str | int]) -> Path | None:
    """Where the figures go; those of `--quick` say nothing."""
    if arguments.json or arguments.quick:
        return arguments.json  # type: ignore[no-any-return]
    return RESULTS / f"{known['date']}-{known['commit']}.json"


def _shown(row: Row) -> str:
    ratio = ""
    if row.rounds is not None:
        ratios = row.rounds.ratios
        ratio = f"{row.rounds.ratio:.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    verdict = {True: "met", False: "MISSED", None: ""}[row.met]
    return _line(row.name, row.ours, row.limit, ratio, f"{row.target} {verdict}")


def _line(*cells: str) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, (38, 44, 38, 22, 16), strict=True)).rstrip()


def _plain(row: Row) -> dict[str, object]:
    rounds = row.rounds
    return {
        "name": row.name,
        "ours": row.ours,
        "limit": row.limit,
        "ratio": rounds.ratio if rounds else None,
        "ratios": rounds.ratios if rounds else None,
        "target": row.target,
        "met": row.met,
        "figures": row.figures,
    }


if __name__ == "__main__":
    sys.exit(main())
