"""Every error that Penstock raises on purpose, in one tree.

The core raises, the edge decides what a person or a client sees. One line each, with the path and what to do.
"""

from __future__ import annotations

import errno


class PenstockError(Exception):
    """The root: whatever is not one of these is a bug."""


class LogError(PenstockError):
    """The log could not do what was asked; nothing that was answered before is affected."""


class DiskFull(LogError):
    """No room (or no quota); what was half written was cut off. The same call works again once there is room."""


class TooManyFiles(LogError):
    """The process or the machine has no file descriptor left; passes by itself."""


class DiskFailed(LogError):
    """The device or the file system answered with an error."""


class FlushFailed(LogError):
    """What was written may not be on the device: the answer to those who waited for it is 'unknown'."""


class Refused(LogError):
    """The log takes nothing until what a failed flush left behind is safe elsewhere."""


class NotRetained(LogError):
    """The offset lies below the earliest that is kept (`earliest` says which)."""

    def __init__(self, message: str, earliest: int) -> None:
        super().__init__(message)
        self.earliest = earliest


class TooLarge(LogError):
    """One append that no batch can hold."""


class NameTaken(LogError):
    """A topic's channels and its readers have names of their own."""


class OtherBatch(LogError):
    """A producer published another batch under this key before."""


class CorruptLog(LogError):
    """A file is not what it has to be, and no rule says how to go on."""


class NoLogThere(LogError):
    """The path that was named holds nothing that a log could be read from."""


class DataPathError(PenstockError):
    """The data path cannot be used: locked, of a newer format, of another program."""


class RegisteringFailed(PenstockError):
    """An nsqlookupd was not told what this node has, or did not answer as it should: it is told again, all of it."""


class ImportFailed(PenstockError):
    """An original NSQ folder could not be converted, or a data path not be written as one."""


class BenchFailed(PenstockError):
    """The server under a load answered with an error or went away: there is no figure."""


class ClientError(PenstockError):
    """What a client did wrong, in NSQ's words: `answer` goes over the wire, and a fatal one ends the connection."""

    code = ""
    fatal = True

    def __init__(self, text: str = "") -> None:
        """The text may hold bytes of the client's that are no UTF-8, as surrogates."""
        super().__init__(text)
        self.text = text

    @property
    def answer(self) -> bytes:
        answer = f"{self.code} {self.text}" if self.text else self.code
        return answer.encode("utf-8", "surrogateescape")


class BadProtocol(ClientError):
    code = "E_BAD_PROTOCOL"


class Invalid(ClientError):
    code = "E_INVALID"


class BadTopic(ClientError):
    code = "E_BAD_TOPIC"


class BadChannel(ClientError):
    code = "E_BAD_CHANNEL"


class BadBody(ClientError):
    code = "E_BAD_BODY"


class BadMessage(ClientError):
    code = "E_BAD_MESSAGE"


class IdentifyFailed(ClientError):
    code = "E_IDENTIFY_FAILED"


class AuthDisabled(ClientError):
    code = "E_AUTH_DISABLED"


class AuthFailed(ClientError):
    code = "E_AUTH_FAILED"


class AuthError(ClientError):
    code = "E_AUTH_ERROR"


class AuthFirst(ClientError):
    code = "E_AUTH_FIRST"


class Unauthorized(ClientError):
    code = "E_UNAUTHORIZED"


class SubFailed(ClientError):
    code = "E_SUB_FAILED"


class PubFailed(ClientError):
    code = "E_PUB_FAILED"


class MpubFailed(ClientError):
    code = "E_MPUB_FAILED"


class DpubFailed(ClientError):
    code = "E_DPUB_FAILED"


class FinFailed(ClientError):
    code = "E_FIN_FAILED"
    fatal = False


class ReqFailed(ClientError):
    code = "E_REQ_FAILED"
    fatal = False


class TouchFailed(ClientError):
    code = "E_TOUCH_FAILED"
    fatal = False


class NotSent(PenstockError):
    """No nsqd could be reached in time: nothing was published, and the same may be tried again."""


class AnswerLost(PenstockError):
    """The connection or the time ended before the answer came: what was published may be there, or not."""


class Closed(PenstockError):
    """A producer or a consumer was asked for something before it was opened, or after it was closed."""


class AlreadyAnswered(PenstockError):
    """A message is finished or requeued once."""


class HandshakeFailed(PenstockError):
    """What listens there is no nsqd, or one that does not do what was asked for, such as TLS."""


class LookupFailed(PenstockError):
    """An nsqlookupd cannot be reached, or answers what it should not."""


class LineTooLong(PenstockError):
    """A client sends a line without an end: it is dropped and told nothing."""


class BadStream(PenstockError):
    """What came over a connection is not the TLS, snappy or deflate that it was agreed to be, or was refused by it."""


class AuthServerError(PenstockError):
    """Nobody could say what a client may do, or it may do nothing: for the log, since a stranger is not told why."""


class Overloaded(PenstockError):
    """More is held for clients than may be, and most of it for this one."""


class HttpError(PenstockError):
    """What a request is answered instead of what it asked for: a status, and NSQ's word for why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class BadOption(PenstockError):
    """An option asks for what cannot be; a daemon logs it as fatal and exits with `exit_code`."""

    exit_code = 1


class BadFlag(BadOption):
    """A command line that cannot be read; a daemon prints it and exits with `exit_code`, as programs in Go do."""

    exit_code = 2


class SparkError(PenstockError):
    """A query cannot go on. Spark shows this one line inside much else: so it says all, what to do as well."""


class NodeFailed(SparkError):
    """An nsqd or nsqlookupd cannot be reached, or answers what it should not: with which HTTP status, if with one.

    `passing`: it may work again soon.
    """

    def __init__(self, message: str, status: int = 0, *, passing: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.passing = passing


class DataLost(SparkError):
    """Messages that the query has still to read, or has read, are not there."""


_BY_CODE = {each.code: each for each in ClientError.__subclasses__()}


def answered_error(answer: bytes) -> ClientError:
    """What nsqd said, as the error that it is: of a class of its own where the code is known."""
    code, _, text = answer.decode("utf-8", "surrogateescape").partition(" ")
    kind = _BY_CODE.get(code)
    if kind is not None:
        return kind(text)
    other = ClientError(text)
    other.code = code
    return other


_BY_ERRNO: dict[int, type[LogError]] = {
    errno.ENOSPC: DiskFull,
    errno.EDQUOT: DiskFull,
    errno.EFBIG: DiskFull,
    errno.EMFILE: TooManyFiles,
    errno.ENFILE: TooManyFiles,
}


def log_error(error: OSError, doing: str) -> LogError:
    """The typed error for what the operating system said while `doing` something."""
    kind = _BY_ERRNO.get(error.errno or 0, DiskFailed)
    return kind(f"{doing}: {error.strerror or error}")
