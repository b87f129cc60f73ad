"""Addresses as users write them."""

from __future__ import annotations

import pytest

from penstock.client.address import Address, address, addresses


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:4150", Address("127.0.0.1", 4150)),
        ("nsqd", Address("nsqd", 4161)),
        ("http://lookup:1/", Address("lookup", 1)),
        ("[::1]:4150", Address("::1", 4150)),
        ("[::1]", Address("::1", 4161)),
    ],
)
def test_an_address_is_a_host_and_perhaps_a_port(text: str, expected: Address) -> None:
    assert address(text, 4161) == expected


@pytest.mark.parametrize("text", ["", ":4150", "a:b", "a:0", "a:65536", "a:1:2", "::1", "[::1", "[::1]x", "a/b"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no address"):
        address(text, 4150)


def test_several_are_a_list_or_separated_by_commas_and_each_counts_once() -> None:
    expected = (Address("a", 1), Address("b", 4150))
    assert addresses("a:1, b", 4150) == addresses(["a:1", "b", "a:1"], 4150) == expected
    assert addresses(None, 4150) == ()


def test_an_address_is_written_as_it_is_read() -> None:
    for text in ("nsqd:4150", "[::1]:4150"):
        assert str(address(text, 1)) == text
