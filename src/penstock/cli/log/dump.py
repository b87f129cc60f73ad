"""Print the messages of a data path, a topic or a file, stepping over damage. Works beside a running node."""

from __future__ import annotations

import itertools
import json
import sys
from typing import TYPE_CHECKING, Final, TypeAlias

from penstock.cli.log import entry_text, showing
from penstock.log.data_path import JOURNAL
from penstock.log.files import Files
from penstock.log.tools.dump import END, Damaged, Found, FoundEntry, Wanted, dump_entries, dump_records
from penstock.log.tools.salvage import Salvaged, salvage_all
from penstock.log.tools.stores import find

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

Item: TypeAlias = tuple[dict[str, str], Found | FoundEntry | Salvaged]

_PREVIEW: Final = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help="a data path, a topic's folder, or one file")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object a line; bodies as text or as base64")
    form.add_argument("--raw", action="store_true", help="bodies alone, each with a newline behind it")
    form.add_argument("--framed", action="store_true", help="bodies alone, each with its size in 4 bytes before it")
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="OFFSET", help="the first offset")
    parser.add_argument("--to", dest="end", type=int, default=END, metavar="OFFSET", help="the first offset not shown")
    parser.add_argument(
        "--since", type=showing.parse_moment, default=0, metavar="TIME", help="appended then or later (RFC 3339)"
    )
    parser.add_argument("--until", type=showing.parse_moment, default=END, metavar="TIME", help="appended before then")
    parser.add_argument("--limit", type=int, metavar="N", help="no more than so many")
    parser.add_argument(
        "--salvage", action="store_true", help="whatever can be found in any file, also what no CRC vouches for"
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.salvage and (arguments.since > 0 or arguments.until < END):
        print(
            "penstock log dump: what is salvaged has no time of append: --salvage with no --since or --until",
            file=sys.stderr,
        )
        return 2
    found = itertools.islice(_everything(arguments), arguments.limit)
    if arguments.raw or arguments.framed:
        return _write_bodies(found, framed=arguments.framed)
    for line in _json_lines(found) if arguments.json else _table(found):
        print(line)
    return 0


def _everything(arguments: argparse.Namespace) -> Iterator[Item]:
    """What was asked for, and where it stands."""
    files = Files()
    if arguments.salvage:
        for path, salvaged in salvage_all(files, arguments.path):
            if salvaged.record.offset < 0 or arguments.first <= salvaged.record.offset < arguments.end:
                yield {"file": path}, salvaged
        return
    wanted = Wanted(arguments.first, arguments.end, arguments.since, arguments.until)
    stores = find(files, arguments.path)
    for store in stores:
        if store.kind == JOURNAL and len(stores) > 1:
            continue  # no messages in it: it is shown where it is asked for
        dump = dump_entries if store.kind == JOURNAL else dump_records
        place = {"topic": store.topic, "store": store.kind} if store.topic else {"store": store.kind}
        if store.only:
            place["file"] = f"{store.directory}/{store.only}"
        yield from ((place, found) for found in dump(files, store, wanted, _tell))


def _tell(damaged: Damaged) -> None:
    print(f"penstock log dump: {damaged.path}: {showing.gap(damaged.gap)}", file=sys.stderr)


def _table(items: Iterable[Item]) -> Iterator[str]:
    shown = None
    for place, found in items:
        if place != shown:
            shown = place
            yield f"# {' '.join(place.values())}"
            if not isinstance(found, FoundEntry):
                id_ = f"{'id':16}" if _due(found) is None else f"{'due':27}"
                yield f"{'offset':>12}  {id_}  {'published':27}  {'size':>8}  message"
        yield _line(found)


def _line(found: Found | FoundEntry | Salvaged) -> str:
    if isinstance(found, FoundEntry):
        return f"{found.ordinal:>12}  {showing.moment(found.appended)}  {entry_text.line(found.entry)}"
    record = found.record
    offset = str(record.offset) if record.offset >= 0 else "?"
    doubt = "  (no CRC vouches for it)" if isinstance(found, Salvaged) and not found.verified else ""
    due = _due(found)
    id_ = record.id.decode("ascii", "replace") if due is None else showing.moment(due)
    body = showing.preview(record.body, _PREVIEW)
    return f"{offset:>12}  {id_}  {showing.moment(record.timestamp)}  {len(record.body):>8}  {body}{doubt}".rstrip()


def _due(found: Found | Salvaged) -> int | None:
    return found.due if isinstance(found, Found) else None


def _json_lines(items: Iterable[Item]) -> Iterator[str]:
    for place, found in items:
        yield json.dumps({**place, **_fields(found)}, ensure_ascii=False)


def _fields(found: Found | FoundEntry | Salvaged) -> dict[str, object]:
    if isinstance(found, FoundEntry):
        return {"ordinal": found.ordinal, "appended": found.appended, **entry_text.fields(found.entry)}
    record = found.record
    fields = {
        "offset": record.offset if record.offset >= 0 else None,
        "id": record.id.decode("ascii", "replace"),
        "timestamp": record.timestamp,
        "attempts": record.attempts,
        **showing.body_fields(record.body),
    }
    if isinstance(found, Salvaged):
        return {**fields, "position": found.position, "verified": found.verified}
    if found.due is not None:
        fields["due"] = found.due
    return {**fields, "appended": found.appended}


def _write_bodies(items: Iterable[Item], *, framed: bool) -> int:
    for _, found in items:
        if isinstance(found, FoundEntry):
            print("penstock log dump: a journal holds no bodies", file=sys.stderr)
            return 2
        body = found.record.body
        sys.stdout.buffer.write(len(body).to_bytes(4, "big") + body if framed else body + b"\n")
    sys.stdout.buffer.flush()
    return 0
