"""The table of imports: who may know whom. `make lint` runs it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCES = Path(__file__).parents[2] / "src" / "penstock"

# Everybody may know `errors`, `plain` and the version in `penstock` itself; these know nobody.
FREE = {"errors", "plain", "__init__"}
MAY_KNOW = {
    "protocol": set(),
    "log": {"protocol"},
    "broker": {"protocol"},
    "asking": set(),
    "client": {"protocol", "stream", "asking"},
    "bench": {"protocol"},
    "stream": set(),
    "auth": {"stream", "asking"},
    "http": {"stream"},
    "options": set(),
    "daemon": {"protocol", "http", "options", "stream", "auth"},
    "nsqd": {"protocol", "log", "broker", "http", "options", "daemon", "stream", "auth", "asking"},
    "nsqlookupd": {"protocol", "http", "options", "daemon", "stream", "auth"},
    "spark": {"protocol", "client", "options"},
    "cli": {"protocol", "log", "broker", "bench", "client", "http", "options", "daemon", "nsqd", "nsqlookupd", "spark"},
}


def test_no_module_imports_what_its_room_may_not_know() -> None:
    # given every module of the package
    # when its imports are held against the table
    wrong = [
        f"{path.relative_to(SOURCES)} imports {imported}"
        for path in sorted(SOURCES.rglob("*.py"))
        for imported in imports_of(path.read_text(), path.relative_to(SOURCES))
        if not allowed(room_of(path.relative_to(SOURCES)), imported)
    ]
    # then there is none that the table does not allow
    assert wrong == []


def test_every_room_stands_in_the_table() -> None:
    # given the packages and modules directly below penstock
    rooms = {room_of(path.relative_to(SOURCES)) for path in SOURCES.rglob("*.py")}
    # then the table knows each
    assert rooms <= FREE | MAY_KNOW.keys()


@pytest.mark.parametrize(
    ("source", "imported"),
    [
        pytest.param("import penstock.log.files", "log", id="plainly"),
        pytest.param("from penstock.log.files import Files", "log", id="from-a-module"),
        pytest.param("from penstock.log import files", "log", id="from-a-room"),
        pytest.param("from penstock import log", "log", id="from-the-root"),
        pytest.param("from . import batch", "protocol", id="from-its-own-room"),
        pytest.param("from ..log import files", "log", id="relative"),
        pytest.param("from .. import log", "log", id="relative-to-the-root"),
        pytest.param("def f():\n    import penstock.log", "log", id="late"),
        pytest.param("if TYPE_CHECKING:\n    from penstock.log.files import Files", "log", id="for-types"),
    ],
)
def test_every_way_to_import_is_seen(source: str, imported: str) -> None:
    # given a module of the protocol that imports something, when it is read
    found = imports_of(source, Path("protocol", "names.py"))
    # then the room is found
    assert list(found) == [imported]


def test_what_the_table_does_not_allow_is_found() -> None:
    assert not allowed("protocol", "log")
    assert not allowed("errors", "log")
    assert allowed("log", "protocol")
    assert allowed("protocol", "errors")


def allowed(room: str, imported: str) -> bool:
    return imported == room or imported in FREE or imported in MAY_KNOW.get(room, set())


def room_of(path: Path) -> str:
    """The package or module directly below penstock that a path (relative to it) lies in."""
    return path.parts[0].removesuffix(".py")


def imports_of(source: str, path: Path) -> Iterator[str]:
    """The rooms of penstock that the module at `path` names in its imports, wherever they stand."""
    for node in ast.walk(ast.parse(source)):
        for name in _named(node, ["penstock", *path.parts[:-1]]):
            parts = name.split(".")
            if parts[0] == "penstock":
                yield parts[1] if len(parts) > 1 else "__init__"


def _named(node: ast.AST, package: list[str]) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = package[: len(package) - node.level + 1] if node.level else []
    module = ".".join([*base, *([node.module] if node.module else [])])
    if module == "penstock":
        return [f"penstock.{alias.name}" for alias in node.names if (SOURCES / alias.name).exists()] or ["penstock"]
    return [module]
