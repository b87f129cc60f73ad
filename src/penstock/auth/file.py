"""Tokens in a file or an environment variable, read again when somebody asks for it."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from penstock.auth.grants import Right
from penstock.auth.tokens import Holder, Tokens, parse
from penstock.errors import AuthServerError, BadOption

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.auth.permissions import Who


class TokenFile:
    """`tokens` are those of the file at `path`, and those that stand in `text`."""

    def __init__(self, path: str, text: str = "", where: str = "", *, warn: Callable[[str], None]) -> None:
        """`where` says where `text` is from. BadOption where there is no sense in them."""
        self._path = path
        self._text = text
        self._where = where
        self._warn = warn
        self.tokens = Tokens()
        self.reload()

    def reload(self) -> None:
        """BadOption leaves all as it was."""
        parts = [(self._text, self._where)] if self._text else []
        if self._path:
            parts.append((_read(self._path), self._path))
            if _mode(self._path) & stat.S_IROTH:
                self._warn(f"{self._path} can be read by everybody on this machine: chmod o-r")
        holders: list[Holder] = []
        for text, where in parts:
            found, doubts = parse(text, where)
            holders += found
            for doubt in doubts:
                self._warn(doubt)
        self.tokens = Tokens(holders)

    # --- an authority for clients of the TCP port

    def ask(self, who: Who) -> Held:
        tokens = self.tokens
        holder = tokens.holder(who.secret)
        if holder is None:
            raise AuthServerError("nobody has this secret")
        return Held(holder, lambda: self.tokens is tokens)


class Held:
    """The permissions of a token's holder, as long as the file is not read again."""

    def __init__(self, holder: Holder, current: Callable[[], bool]) -> None:
        self._holder = holder
        self._current = current
        self.identity = holder.name
        self.identity_url = ""

    @property
    def count(self) -> int:
        return len(self._holder.grants)

    def hold(self, now: int) -> bool:
        return self._current()

    def allow(self, topic: str, channel: str) -> bool:
        if channel:
            return self._holder.may(Right.SUBSCRIBE, topic, channel)
        return self._holder.may(Right.PUBLISH, topic)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError) as error:
        raise BadOption(f"{path}: {getattr(error, 'strerror', None) or 'no UTF-8'}") from None


def _mode(path: str) -> int:
    return os.stat(path).st_mode
