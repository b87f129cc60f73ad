"""What is asked of an auth server, and what it answers: NSQ's way. Bytes in, bytes out; times in ns."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlencode

from penstock.auth.grants import Right
from penstock.errors import AuthServerError

if TYPE_CHECKING:
    from penstock.auth.permissions import Who

ACCEPT: Final = {"Accept": "application/vnd.nsq; version=1.0"}
_KNOWN: Final = 1024  # decisions that are remembered
_S: Final = 10**9


class Query(NamedTuple):
    """An HTTP request: a POST where it has a body."""

    url: str
    headers: dict[str, str]
    body: bytes | None = None


def query(address: str, method: str, who: Who) -> Query:
    """`address` is a URL, or host:port of a server that is asked for `/auth`."""
    url = address if "://" in address else f"http://{address}/auth"
    said = {
        "common_name": who.common_name,
        "remote_ip": who.remote_ip,
        "secret": who.secret.decode("utf-8", "replace"),
        "tls": str(who.tls).lower(),
    }
    if method == "post":  # each value is a list, as nsqd writes them
        body = json.dumps({key: [value] for key, value in said.items()}).encode()
        return Query(url, ACCEPT | {"Content-Type": "application/json"}, body)
    return Query(f"{url}?{urlencode(said)}", ACCEPT)


class Authorization(NamedTuple):
    """Patterns are regular expressions, and found anywhere in a name."""

    topic: re.Pattern[str]
    channels: tuple[re.Pattern[str], ...]
    permissions: frozenset[str]

    def allows(self, topic: str, channel: str) -> bool:
        if (Right.SUBSCRIBE if channel else Right.PUBLISH) not in self.permissions or not self.topic.search(topic):
            return False
        return any(each.search(channel) for each in self.channels)  # with no channel too, as nsqd does


class Answer:
    """Permissions, until their time is over."""

    def __init__(self, identity: str, identity_url: str, authorizations: list[Authorization], until: int) -> None:
        self.identity = identity
        self.identity_url = identity_url
        self._authorizations = authorizations
        self._until = until
        self._known: dict[tuple[str, str], bool] = {}

    @property
    def count(self) -> int:
        return len(self._authorizations)

    def hold(self, now: int) -> bool:
        return now <= self._until

    def allow(self, topic: str, channel: str) -> bool:
        known = self._known.get((topic, channel))
        if known is None:
            if len(self._known) >= _KNOWN:
                self._known.clear()
            known = any(each.allows(topic, channel) for each in self._authorizations)
            self._known[topic, channel] = known
        return known


def read(body: bytes, now: int) -> Answer:
    """AuthServerError, which says what is wrong with it."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        raise AuthServerError("the answer is no JSON") from None
    fields = _Fields("the answer", said)
    ttl = fields.take("ttl", int)
    authorizations = [_authorization(each) for each in fields.take("authorizations", list)]
    if ttl <= 0:
        raise AuthServerError(f"invalid TTL {ttl} (must be >0)")
    return Answer(fields.take("identity", str), fields.take("identity_url", str), authorizations, now + ttl * _S)


def _authorization(said: object) -> Authorization:
    fields = _Fields("an authorization", said)
    permissions = fields.texts("permissions")
    for permission in permissions:
        if permission not in (Right.SUBSCRIBE, Right.PUBLISH):
            raise AuthServerError(f"unknown permission {permission}")
    channels = tuple(_pattern("channel", each) for each in fields.texts("channels"))
    return Authorization(_pattern("topic", fields.take("topic", str)), channels, frozenset(permissions))


class _Fields:
    """An object as Go reads it: keys in any case, null says nothing, and what is missing is nothing."""

    def __init__(self, what: str, said: object) -> None:
        if not isinstance(said, dict | None):
            raise AuthServerError(f"{what} is no object")
        self._what = what
        self._said = {key.lower(): value for key, value in (said or {}).items()}

    def take(self, key: str, kind: Any) -> Any:
        value = self._said.get(key)
        if value is None:
            return kind()
        if type(value) is not kind:
            raise AuthServerError(f"{key} of {self._what} is of another type")
        return value

    def texts(self, key: str) -> list[str]:
        values: list[str] = self.take(key, list)
        if not all(isinstance(value, str) for value in values):
            raise AuthServerError(f"{key} of {self._what} are not texts")
        return values


def _pattern(what: str, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise AuthServerError(f"unable to compile {what} {text!r}: {error}") from None
