"""What an NSQ client may ask for, as `parser` finds it. Knows no bytes but the clients' own, and no answers.

The hot ones come as runs, so that nothing is done for each message: FIN as numbers, publishes as the place where their
bodies lie. Ids are numbers, with NO_ID for what no message is called; delays are in ns.

Compiled: one is made for each read of a busy connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

try:
    import cython
except ImportError:  # a plain build has no need of Cython
    from penstock import plain as cython  # type: ignore[no-redef]

if TYPE_CHECKING:
    from array import array
    from typing import TypeAlias


@cython.cclass
class Fins:
    """A run of FIN; an id that is no number comes alone, and stands in `raw`."""

    ids: array[int] = cython.declare(object, visibility="readonly")  # type: ignore[arg-type]
    raw = cython.declare(bytes, visibility="readonly")

    def __init__(self, ids: array[int], raw: bytes = b"") -> None:
        self.ids = ids
        self.raw = raw

    def text(self, place: int) -> str:
        """An id as the client sent it."""
        return self.raw.decode("utf-8", "surrogateescape") or f"{self.ids[place]:016x}"


@cython.cclass
class Publish:
    """`count` bodies that fill `data[start:stop]`, each behind `skip` bytes and its size, until more is received."""

    topic = cython.declare(str, visibility="readonly")
    data = cython.declare(bytearray, visibility="readonly")
    start = cython.declare(cython.Py_ssize_t, visibility="readonly")
    stop = cython.declare(cython.Py_ssize_t, visibility="readonly")
    count = cython.declare(cython.Py_ssize_t, visibility="readonly")
    skip = cython.declare(cython.Py_ssize_t, visibility="readonly")

    def __init__(
        self,
        topic: str,
        data: bytearray,
        start: cython.Py_ssize_t,
        stop: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
        skip: cython.Py_ssize_t,
    ) -> None:
        self.topic = topic
        self.data = data
        self.start = start
        self.stop = stop
        self.count = count
        self.skip = skip


@cython.cclass
class Pubs(Publish):
    """A run of PUB to one topic; each is owed an answer."""


@cython.cclass
class Mpub(Publish):
    """One MPUB: all or nothing, and one answer."""


class Opening(NamedTuple):
    """An MPUB has begun: its client must be allowed to publish to the topic, which exists from now on."""

    topic: str


class Dpub(NamedTuple):
    topic: str
    delay: int
    body: bytes


class Req(NamedTuple):
    """A message is given back, for no longer than may be; `text` is its id as the client sent it."""

    id: int
    text: str
    delay: int


class Touch(NamedTuple):
    id: int
    text: str


class Rdy(NamedTuple):
    count: int  # type: ignore[assignment]  # hides tuple.count


class Sub(NamedTuple):
    topic: str
    channel: str


class Identify(NamedTuple):
    body: bytes


class Auth(NamedTuple):
    secret: bytes


class Cls(NamedTuple):
    """The client wants no more messages."""


if TYPE_CHECKING:
    Command: TypeAlias = Fins | Pubs | Mpub | Opening | Dpub | Req | Touch | Rdy | Sub | Identify | Auth | Cls
