"""What each route takes and answers, for the OpenAPI document. A table; knows no handler.

An answer that is no error names a schema of `shapes.py`, or the type of what is no JSON. Errors stand by their words:
the status says which of them may come. What every route may answer stands in `EVERYWHERE`.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

NAME: Final = {"type": "string", "pattern": r"^[.a-zA-Z0-9_-]{1,64}$|^[.a-zA-Z0-9_-]{1,54}#ephemeral$"}
PLAIN_NAME: Final = {"type": "string", "pattern": r"^[.a-zA-Z0-9_-]{1,64}$"}
PRODUCER: Final = {"type": "string", "pattern": r"^[.a-zA-Z0-9_-]{1,64}$"}
DIGEST: Final = {"type": "string", "pattern": r"^([0-9a-fA-F]{2}){1,64}$"}
NUMBER: Final = {"type": "integer", "minimum": 0, "maximum": (1 << 63) - 1}
WORD: Final = {"type": "string"}
YES: Final = {"type": "string", "enum": ["true", "false", "1", "0"]}
DURATION: Final = {"type": "string", "pattern": r"^-?([0-9]+(\.[0-9]+)?(h|m|s|ms|us|ns))+$"}
PLACE: Final = {
    "anyOf": [{"enum": ["earliest", "latest"]}, {**NUMBER}, {"type": "string", "format": "date-time"}, DURATION]
}
OR_DEFAULT: Final = {"enum": ["default"]}

OCTETS: Final = "application/octet-stream"
TEXT: Final = "text/plain"


class Parameter(NamedTuple):
    """In the query, unless it is part of the path."""

    schema: dict[str, Any]
    about: str
    where: str = "query"


PARAMETERS: Final = {
    "topic": Parameter(NAME, "the topic"),
    "channel": Parameter(NAME, "the channel, or for what can be done to either a reader"),
    "reader": Parameter(PLAIN_NAME, "the reader"),
    "opt": Parameter(WORD, "an option, by its key in the config file", "path"),
    "defer": Parameter({"type": "integer", "minimum": 0}, "ms that the message is deferred"),
    "binary": Parameter(WORD, "count and sizes instead of lines; anything but false and 0 means yes"),
    "due": Parameter(NUMBER, "ns since 1970 at which the messages are due"),
    "producer": Parameter(PRODUCER, "who numbers its batches"),
    "sequence": Parameter(NUMBER, "the batch's number"),
    "digest": Parameter(DIGEST, "of the batch, in hex"),
    "format": Parameter(WORD, "json, or else text"),
    "include_clients": Parameter(YES, "whether clients are shown"),
    "include_mem": Parameter(YES, "whether memory is shown"),
    "from": Parameter(PLACE, "where it begins: earliest, latest, an offset, a time, or how long ago"),
    "to": Parameter(PLACE, "where it goes on: earliest, latest, an offset, a time, or how long ago"),
    "n": Parameter({"type": "integer", "minimum": 1, "maximum": 100}, "of each state"),
    "state": Parameter({"enum": ["next", "ready", "in_flight", "delayed", "deferred"]}, "this state alone"),
    "offset": Parameter(NUMBER, "an offset"),
    "until": Parameter(NUMBER, "batches that begin below that offset"),
    "max_bytes": Parameter(NUMBER, "about so many; one batch at least"),
    "incarnation": Parameter({"type": "string"}, "which life of the topic is meant"),
    "timestamp": Parameter(NUMBER, "ns since 1970"),
    "bytes": Parameter({"anyOf": [NUMBER, OR_DEFAULT]}, "how much of what is consumed is kept"),
    "time": Parameter({"anyOf": [DURATION, OR_DEFAULT]}, "how long it is kept"),
    "seconds": Parameter({"type": "integer", "minimum": 1, "maximum": 300}, "how long to look"),
}


class Operation(NamedTuple):
    """`takes` ends with a ! what has to be there. `answers` are types and schemas: `type` or `type schema`."""

    about: str
    takes: str = ""
    answers: tuple[str, ...] = (TEXT,)
    errors: str = ""  # status and words, as in `400 A B; 404 C`
    body: str = ""  # what it is, where there is one


EVERYWHERE: Final = (
    "400 INVALID_REQUEST; 401 UNAUTHORIZED; 403 FORBIDDEN TLS_REQUIRED; 413 BODY_TOO_BIG; 414 URI_TOO_LONG;"
    "431 HEADERS_TOO_BIG; 500 INTERNAL_ERROR"
)
_TOPIC: Final = "400 MISSING_ARG_TOPIC INVALID_TOPIC; 404 TOPIC_NOT_FOUND"
_CHANNEL: Final = (
    "400 MISSING_ARG_TOPIC INVALID_ARG_TOPIC MISSING_ARG_CHANNEL INVALID_ARG_CHANNEL;"
    "404 TOPIC_NOT_FOUND CHANNEL_NOT_FOUND"
)
_PUBLISH: Final = "400 MISSING_ARG_TOPIC INVALID_TOPIC; 413 MSG_TOO_BIG; 503 PUB_FAILED"
_READER: Final = "400 MISSING_ARG_READER INVALID_ARG_READER"
_PRODUCER: Final = "400 MISSING_ARG_PRODUCER INVALID_ARG_PRODUCER"
_KEY: Final = f"{_PRODUCER} MISSING_ARG_SEQUENCE INVALID_ARG_SEQUENCE MISSING_ARG_DIGEST INVALID_ARG_DIGEST"
_REPEAT: Final = "409 OTHER_DIGEST"
_GONE: Final = "416 NOT_RETAINED BEYOND_THE_END"
_OTHER: Final = "409 OTHER_INCARNATION"
NOTHING: Final = ("",)
JSON: Final = "application/json"

_PUB: Final = Operation(
    "the body is one message",
    "topic! defer",
    errors=f"{_PUBLISH}; 400 MSG_EMPTY INVALID_DEFER",
    body="the message",
)
_MPUB: Final = Operation(
    "a message a line, or with binary=true count and messages behind their sizes",
    "topic! binary defer due producer sequence digest",
    errors=f"{_PUBLISH}; 413 BODY_TOO_BIG BAD_BODY BAD_MESSAGE; 400 INVALID_DEFER INVALID_ARG_DUE; {_KEY}; {_REPEAT}",
    body="the messages",
)


def _change(about: str, takes: str = "topic!", errors: str = _TOPIC) -> Operation:
    return Operation(about, takes, NOTHING, errors)


OPERATIONS: Final = {
    "GET /ping": Operation("whether the node is well", errors="500 text"),
    "GET /info": Operation("who the node is", answers=(f"{JSON} Info",)),
    "GET /stats": Operation(
        "topics, channels and clients", "format topic channel include_clients include_mem", (TEXT, f"{JSON} Stats")
    ),
    "GET /metrics": Operation("for Prometheus"),
    "GET /openapi.json": Operation("this document", answers=(f"{JSON} Document",)),
    "GET /config/{opt}": Operation("an option", "opt!", (TEXT, f"{JSON} Any"), "400 INVALID_OPTION"),
    "PUT /config/{opt}": Operation(
        "log_level: a word; nsqlookupd_tcp_addresses: a JSON list",
        "opt!",
        (f"{JSON} Any",),
        "400 INVALID_OPTION INVALID_VALUE; 413 INVALID_VALUE",
        "the value",
    ),
    "POST /pub": _PUB,
    "POST /put": _PUB._replace(about=f"{_PUB.about}; NSQ's old name of /pub"),
    "POST /mpub": _MPUB,
    "POST /mput": _MPUB._replace(about=f"{_MPUB.about}; NSQ's old name of /mpub"),
    "GET /producer": Operation("what it published last", "producer!", (f"{JSON} Producer",), _PRODUCER),
    "POST /producer/mark": _change(
        "a sequence that publishes nothing", "producer! sequence! digest!", f"{_KEY}; {_REPEAT}"
    ),
    "POST /topic/create": _change("make a topic", errors="400 MISSING_ARG_TOPIC INVALID_TOPIC"),
    "POST /topic/delete": _change("with its channels"),
    "POST /topic/empty": _change("forget what no channel was given yet"),
    "POST /topic/pause": _change("its channels are given nothing new"),
    "POST /topic/unpause": _change("they are again"),
    "POST /topic/retain": Operation(
        "how much of what is consumed is kept",
        "topic! bytes time",
        (f"{JSON} Retained",),
        f"{_TOPIC}; 400 MISSING_ARG_BYTES INVALID_ARG_BYTES INVALID_ARG_TIME; 409 IS_EPHEMERAL",
    ),
    "POST /channel/create": Operation(
        "make a channel; with from= one that begins there",
        "topic! channel! from",
        (f"{JSON} Moved", ""),
        f"{_CHANNEL}; 400 INVALID_ARG_FROM; 409 IS_A_READER; {_GONE}",
    ),
    "POST /channel/delete": _change("and send its consumers away", "topic! channel!", _CHANNEL),
    "POST /channel/empty": _change("forget all that it has", "topic! channel!", f"{_CHANNEL}; 409 IS_A_READER"),
    "POST /channel/pause": _change("its consumers are given nothing", "topic! channel!", _CHANNEL),
    "POST /channel/unpause": _change("they are again", "topic! channel!", _CHANNEL),
    "POST /channel/rewind": Operation(
        "go on from elsewhere",
        "topic! channel! to!",
        (f"{JSON} Moved",),
        f"{_CHANNEL}; 400 MISSING_ARG_TO INVALID_ARG_TO; 409 IS_A_READER; {_GONE}",
    ),
    "GET /channel/peek": Operation(
        "what it has, and nothing is consumed",
        "topic! channel! state n",
        (f"{JSON} Peek",),
        f"{_CHANNEL}; 400 INVALID_ARG_STATE INVALID_ARG_N; 409 IS_A_READER",
    ),
    "POST /reader/commit": Operation(
        "all below the offset is read",
        "topic! reader! offset! incarnation",
        (f"{JSON} Moved",),
        f"{_TOPIC}; {_READER} MISSING_ARG_OFFSET INVALID_ARG_OFFSET; {_OTHER} IS_A_CHANNEL; 416 BEYOND_THE_END",
    ),
    "POST /reader/delete": _change(
        "and hold nothing for it", "topic! reader!", f"{_TOPIC} READER_NOT_FOUND; {_READER}"
    ),
    "GET /log": Operation(
        "where a topic's log begins and ends", "topic! reader", (f"{JSON} Log",), f"{_TOPIC}; 400 INVALID_ARG_READER"
    ),
    "GET /log/read": Operation(
        "whole batches as they stand in the files",
        "topic! offset! until max_bytes incarnation",
        (OCTETS,),
        f"{_TOPIC}; 400 MISSING_ARG_OFFSET INVALID_ARG_OFFSET INVALID_ARG_UNTIL INVALID_ARG_MAX_BYTES;{_OTHER};{_GONE}",
    ),
    "GET /log/at": Operation(
        "the offset that a time stands at",
        "topic! timestamp!",
        (f"{JSON} At",),
        f"{_TOPIC}; 400 MISSING_ARG_TIMESTAMP INVALID_ARG_TIMESTAMP",
    ),
    "GET /debug/pprof/": Operation("what is below it"),
    "GET /debug/pprof/cmdline": Operation("how the program was started"),
    "GET /debug/pprof/goroutine": Operation("where each thread and task stands"),
    "GET /debug/pprof/profile": Operation(
        "where the loop spent its time", "seconds", errors="400 INVALID_SECONDS; 409 PROFILE_IN_PROGRESS"
    ),
    "POST /debug/freememory": Operation("give unused memory back", answers=NOTHING),
}
