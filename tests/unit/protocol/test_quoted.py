"""What Go's %q makes of a text."""

from __future__ import annotations

import pytest

from penstock.protocol.quoted import quoted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", '""'),
        (b"plain text", '"plain text"'),
        (b'a"b\\c', r'"a\"b\\c"'),
        (b"\a\b\f\n\r\t\v", r'"\a\b\f\n\r\t\v"'),
        (b"\x00\x1f\x7f", r'"\x00\x1f\x7f"'),
        ("é€\U0001f600".encode(), '"é€\U0001f600"'),
        (b"\xff\xe2\x82", r'"\xff\xe2\x82"'),
        (b"\xed\xa0\x80", r'"\xed\xa0\x80"'),
        ("\u0085\u00a0\u200b\u2028\ufeff".encode(), r'"\u0085\u00a0\u200b\u2028\ufeff"'),
        ("\U000e0001".encode(), r'"\U000e0001"'),
        ("\ufffd".encode(), '"\ufffd"'),
    ],
)
def test_a_text_is_quoted_as_go_quotes_it(text: bytes, expected: str) -> None:
    assert quoted(text) == expected
