"""Text in quotes as NSQ's error texts have it, which is Go's `%q`. Knows bytes, and nothing of what they name."""

from __future__ import annotations

from typing import Final

_SHORT: Final = {
    "\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v", '"': r"\"", "\\": r"\\",
}  # fmt: skip


def quoted(text: bytes) -> str:
    """The text between double quotes; what is not printable, or no UTF-8, is escaped."""
    return '"' + "".join(map(_escaped, text.decode("utf-8", "surrogateescape"))) + '"'


def _escaped(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if character.isprintable():
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is no UTF-8
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
