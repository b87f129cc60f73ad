"""What stands behind a question mark, by the rules of Go's `url.ParseQuery`. Knows bytes, and no request."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

_HEX = frozenset(b"0123456789abcdefABCDEF")


def arguments(query: bytes) -> dict[str, list[str]]:
    """Each name with its values in order; ValueError for a bad escape or a semicolon.

    Bytes that are no UTF-8 are there as surrogates.
    """
    found: dict[str, list[str]] = {}
    text = query.decode("utf-8", "surrogateescape")
    if ";" in text:
        raise ValueError("invalid semicolon separator in query")
    escaped = "%" in text or "+" in text
    for pair in text.split("&"):
        if pair:
            name, _, value = pair.partition("=")
            if escaped:
                name, value = _plain(name), _plain(value)
            found.setdefault(name, []).append(value)
    return found


def unquoted(text: bytes) -> bytes:
    """The text with its percent escapes undone; ValueError where one is none."""
    for part in text.split(b"%")[1:]:
        if len(part) < 2 or not _HEX.issuperset(part[:2]):
            raise ValueError(f"invalid URL escape %{part[:2].decode('latin-1')}")
    return unquote_to_bytes(text)


def _plain(text: str) -> str:
    escaped = text.replace("+", " ").encode("utf-8", "surrogateescape")
    return unquoted(escaped).decode("utf-8", "surrogateescape")
