"""Tokens: who is who, who may do what, and what is wrong with a file of them."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.auth.file import TokenFile
from penstock.auth.grants import Right, grant
from penstock.auth.permissions import Who
from penstock.auth.tokens import Tokens, parse
from penstock.errors import AuthServerError, BadOption

if TYPE_CHECKING:
    from pathlib import Path

LINES = f"""
# name   token                grants
shop     token-of-the-shop    publish:orders.*
billing  sha256:{hashlib.sha256(b"token-of-billing").hexdigest()}  subscribe:orders.*/billing* read:bills

ops      token-of-operators   *:*
"""
P, S, A, R, ANY = Right.PUBLISH, Right.SUBSCRIBE, Right.ADMIN, Right.READ, Right.ANY


def tokens(lines: str = LINES) -> Tokens:
    return Tokens(parse(lines, "tokens")[0])


@pytest.mark.parametrize(
    ("token", "name"),
    [
        pytest.param(b"token-of-the-shop", "shop", id="as-it-is"),
        pytest.param(b"token-of-billing", "billing", id="as-a-digest"),
        pytest.param(b"token-of-the-sho", None, id="shorter"),
        pytest.param(b"token-of-the-shop ", None, id="longer"),
        pytest.param(b"", None, id="none"),
        pytest.param(b"shop", None, id="the-name"),
        pytest.param(hashlib.sha256(b"token-of-billing").hexdigest().encode(), None, id="the-digest"),
    ],
)
def test_a_token_has_one_holder(token: bytes, name: str | None) -> None:
    # when a token is shown, then it is known whose it is
    holder = tokens().holder(token)
    assert (holder and holder.name) == name


@pytest.mark.parametrize(
    ("token", "right", "topic", "channel", "may"),
    [
        pytest.param(b"token-of-the-shop", P, "orders.eu", None, True, id="publish"),
        pytest.param(b"token-of-the-shop", P, "orders", None, False, id="to-another-topic"),
        pytest.param(b"token-of-the-shop", P, "my-orders.eu", None, False, id="names-match-as-a-whole"),
        pytest.param(b"token-of-the-shop", P, None, None, False, id="to-no-topic"),
        pytest.param(b"token-of-the-shop", S, "orders.eu", "a", False, id="another-right"),
        pytest.param(b"token-of-the-shop", ANY, None, None, True, id="whatever-needs-any-token"),
        pytest.param(b"token-of-billing", S, "orders.eu", "billing2", True, id="subscribe"),
        pytest.param(b"token-of-billing", S, "orders.eu", "shipping", False, id="to-another-channel"),
        pytest.param(b"token-of-billing", R, "bills", None, True, id="which-has-its-own-topics"),
        pytest.param(b"token-of-billing", R, "orders.us", None, True, id="who-may-subscribe-may-read"),
        pytest.param(b"token-of-billing", S, "bills", "billing", False, id="and-not-the-other-way-round"),
        pytest.param(b"token-of-the-shop", R, "orders.eu", None, False, id="who-may-publish-may-not"),
        pytest.param(b"token-of-billing", R, None, None, False, id="read-of-all"),
        pytest.param(b"token-of-operators", A, "orders.eu", "billing", True, id="everything"),
        pytest.param(b"token-of-operators", A, None, None, True, id="of-everything"),
    ],
)
def test_a_holder_may_do_what_is_granted(
    token: bytes, right: Right, topic: str | None, channel: str | None, may: bool
) -> None:
    holder = tokens().holder(token)
    assert holder is not None
    assert holder.may(right, topic, channel) is may


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("orders", "orders", True),
        ("orders*", "orders#ephemeral", True),
        ("orders", "orders#ephemeral", False),
        ("orders#ephemeral", "orders#ephemeral", True),
        ("a*b*c", "axxbyyc", True),
        ("a*b*c", "axxbyy", False),
        ("a.b", "axb", False),
        ("**", "anything", True),
        ("*" * 40 + "b", "a" * 64, False),
    ],
)
def test_a_star_stands_for_anything_and_nothing_else_does(pattern: str, name: str, matches: bool) -> None:
    assert grant(f"publish:{pattern}").allows(P, name, None) is matches


SECRET = "kW3xr0secret"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        pytest.param("shop", "tokens, line 2: a line has a name, a token and at least one grant", id="a-name-alone"),
        pytest.param(f"shop {SECRET}", "line 2: a line has a name", id="no-grant"),
        pytest.param(f"shop publish:* {SECRET}", "line 2: word 3 is no grant", id="in-another-order"),
        pytest.param(f"shop {SECRET} publish", "line 2: word 3 is no grant", id="no-topic"),
        pytest.param(f"shop {SECRET} read:* write:*", "line 2: word 4 names a right that is none of", id="no-right"),
        pytest.param(f"shop {SECRET} any:*", "names a right that is none of", id="a-right-nobody-gives"),
        pytest.param(f"shop {SECRET} publish:", "has a pattern that no name can match", id="no-pattern"),
        pytest.param(f"shop {SECRET} publish:orders/", "has a pattern", id="no-channel"),
        pytest.param(f"shop {SECRET} publish:or(ders", "has a pattern", id="a-regular-expression"),
        pytest.param("shop sha256:abc publish:*", "line 2: behind sha256: stand 64 hex digits", id="half-a-digest"),
    ],
)
def test_what_is_no_token_is_refused_and_never_shown(line: str, why: str) -> None:
    # given a line that cannot be read, when it is, then the place is named, and no token
    with pytest.raises(BadOption, match=why) as refused:
        parse(f"# tokens\n{line}\n", "tokens")
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (f"shop {SECRET} read:*; shop other-{SECRET} read:*", "two tokens of the name shop"),
        (f"shop {SECRET} read:*; bill {SECRET} read:*", "shop and bill have the same token"),
        (f"a {SECRET} read:*; b sha256:{hashlib.sha256(SECRET.encode()).hexdigest()} read:*", "a and b have the same"),
    ],
)
def test_two_that_cannot_be_told_apart_are_refused(lines: str, why: str) -> None:
    with pytest.raises(BadOption, match=why):
        tokens(lines)


def test_a_token_that_may_be_guessed_is_told_of() -> None:
    _, doubts = parse("shop short publish:*; bill long-enough-not-to-be-guessed publish:*", "tokens")
    assert doubts == ["tokens, line 1: the token of shop has fewer than 16 characters, and may be guessed"]


LINE = st.lists(st.text("abc:*/,;.#\n publish", max_size=12), max_size=5).map(" ".join)


@given(text=st.lists(LINE | st.text(), max_size=4).map("\n".join))
def test_random_lines_are_tokens_or_refused(text: str) -> None:
    try:
        holders, _ = parse(text, "tokens")
    except BadOption:
        return
    # what is taken allows no more than its patterns say
    for holder in holders:
        everything = any(each.topics.strip("*") == "" for each in holder.grants)
        assert everything or not holder.may(Right.PUBLISH, "a-topic-that-no-line-names-Z")


# --- files


def test_a_file_is_read_again_when_somebody_asks_for_it(tmp_path: Path) -> None:
    # given a file, and a client that has shown its token
    path = tmp_path / "tokens"
    path.write_text("shop token-of-the-shop publish:orders")
    path.chmod(0o600)
    warned: list[str] = []
    file = TokenFile(str(path), warn=warned.append)
    held = file.ask(Who(b"token-of-the-shop", "10.0.0.1"))
    assert (held.identity, held.count, held.allow("orders", ""), held.hold(0)) == ("shop", 1, True, True)
    # when the file says something else, and is read again
    path.write_text("shop token-of-the-shop subscribe:orders/shipping")
    assert held.hold(0)
    file.reload()
    # then that client has to be asked for again, and may do what it says now
    assert not held.hold(0)
    held = file.ask(Who(b"token-of-the-shop", "10.0.0.1"))
    assert not held.allow("orders", "")
    assert held.allow("orders", "shipping")
    assert not held.allow("orders", "billing")
    assert warned == []


def test_a_file_that_cannot_be_read_changes_nothing(tmp_path: Path) -> None:
    # given a file that was read
    path = tmp_path / "tokens"
    path.write_text("shop token-of-the-shop publish:orders")
    file = TokenFile(str(path), warn=lambda _: None)
    # when it is broken, or gone
    for text in ("shop", None):
        path.write_text(text) if text else path.unlink()
        with pytest.raises(BadOption, match=str(path)):
            file.reload()
        # then the tokens are those from before
        assert file.ask(Who(b"token-of-the-shop", "10.0.0.1")).identity == "shop"


def test_tokens_stand_in_a_variable_too(tmp_path: Path) -> None:
    # given some in a file and some in the environment
    path = tmp_path / "tokens"
    path.write_text("shop token-of-the-shop publish:orders")
    file = TokenFile(str(path), "ops token-of-operators *:*;bill token-of-billing read:*", "$V", warn=lambda _: None)
    # then all of them are known
    assert {holder.name for holder in file.tokens} == {"shop", "ops", "bill"}


def test_who_shows_another_secret_is_nobody(tmp_path: Path) -> None:
    file = TokenFile("", "shop token-of-the-shop publish:orders", "$V", warn=lambda _: None)
    with pytest.raises(AuthServerError):
        file.ask(Who(b"token", "10.0.0.1"))


def test_a_file_that_everybody_can_read_is_told_of(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text("")
    os.chmod(path, 0o644)
    warned: list[str] = []
    TokenFile(str(path), warn=warned.append)
    assert warned == [f"{path} can be read by everybody on this machine: chmod o-r"]
