"""The corpus in tests/corpus, a folder for each parser of what strangers send: heard as it is, cut, and mutated.

What a fuzzer finds is added there as a file; `make fuzz` mutates all of them further.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.auth.tokens import parse
from penstock.errors import BadOption, BadStream, ClientError, LineTooLong
from penstock.http.limits import SLICE, Limits
from penstock.http.parser import Parser
from penstock.protocol import v1
from penstock.stream import Deflate, Snappy
from tests.unit.http.clients import echoing
from tests.unit.protocol.conversation import byte_by_byte, hear

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from penstock.stream import Layer

CORPUS: Final = Path(__file__).resolve().parents[1] / "corpus"


def lookupd(pieces: Iterable[bytes]) -> list[object]:
    """Commands, and the error that ends them."""
    parser, found = v1.Parser(), list[object]()
    try:
        for piece in pieces:
            parser.feed(piece)
            while (command := parser.next()) is not None:
                found.append(command)
    except (ClientError, LineTooLong) as error:
        found.append(repr(error))
    return found


def http(pieces: Iterable[bytes]) -> list[object]:
    parser = Parser(echoing(max_body=1000).find, Limits())
    for piece in pieces:
        for at in range(0, len(piece), SLICE):
            parser.feed(piece[at : at + SLICE])
    return [(each.method, each.path, each.query, each.body, each.keep_alive) for each in parser.requests]


def stream(layer: Layer, pieces: Iterable[bytes]) -> list[object]:
    """All bytes that it gives before it is none, and whether it is one."""
    came = b""
    try:
        for piece in pieces:
            for part in layer.decode(piece):
                came += bytes(part)
    except BadStream:
        return ["bad"]
    return [came]


def tokens(pieces: Iterable[bytes]) -> list[object]:
    """A file is read whole."""
    try:
        return [parse(b"".join(pieces).decode("utf-8", "surrogateescape"), "here")]
    except BadOption as error:
        return [str(error)]


TARGETS: Final[dict[str, Callable[[list[bytes]], object]]] = {
    "v2": hear,
    "v1": lookupd,
    "http": http,
    "snappy": lambda pieces: stream(Snappy(), pieces),
    "deflate": lambda pieces: stream(Deflate(6), pieces),
    "tokens": tokens,
}
ENTRIES: Final = {name: [path.read_bytes() for path in sorted((CORPUS / name).iterdir())] for name in TARGETS}


def test_each_folder_of_the_corpus_has_a_parser() -> None:
    assert {path.name for path in CORPUS.iterdir()} == set(TARGETS)
    assert all(len(entries) >= 3 for entries in ENTRIES.values())


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_is_in_the_corpus_is_heard_the_same_in_one_piece_and_byte_by_byte(path: Path) -> None:
    hears, data = TARGETS[path.parent.name], path.read_bytes()
    assert hears([data]) == hears(byte_by_byte(data))


@pytest.mark.parametrize("target", TARGETS)
@given(st.data())
def test_what_is_made_from_the_corpus_is_taken_or_refused(target: str, data: st.DataObject) -> None:
    # given parts of what is in the corpus, some bytes of them others, and something random between
    entries = ENTRIES[target]
    said = b""
    for _ in range(data.draw(st.integers(1, 4))):
        part = bytearray(data.draw(st.sampled_from(entries)))
        del part[data.draw(st.integers(0, len(part))) :]
        for _ in range(data.draw(st.integers(0, 3)) if part else 0):
            part[data.draw(st.integers(0, len(part) - 1))] = data.draw(st.integers(0, 255))
        said += bytes(part) + data.draw(st.binary(max_size=8))
    # when it is heard in two pieces, then there is no error but those that are told to who said it
    cut = data.draw(st.integers(0, len(said)))
    TARGETS[target]([said[:cut], said[cut:]])
