"""`/openapi.json`: the routes that there are, as an OpenAPI document. Knows the table of routes, and what they say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from penstock import __version__
from penstock.http import Request, Response, json
from penstock.nsqd.http.operations import EVERYWHERE, JSON, OCTETS, OPERATIONS, PARAMETERS, Operation
from penstock.nsqd.http.shapes import SHAPES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.http import Routes

_MEANINGS: Final = {
    400: "what is asked for says nothing, or something is missing", 401: "a token is missing, or is none",
    403: "the token's rights do not go so far, or TLS is wanted", 404: "it is not there", 409: "it is in the way",
    413: "too big, or a body that is none", 414: "too long", 416: "not kept, or not there yet", 431: "too big",
    500: "it could not be done, or the node is not well", 503: "whether it is there is unknown: publish again",
}  # fmt: skip


class OpenApi:
    """The handler. The table may still grow until it is asked for the first time."""

    def __init__(self, table: Routes) -> None:
        self._table = table
        self._answer: Response | None = None

    def openapi(self, _request: Request) -> Response:
        if self._answer is None:
            self._answer = json(document(self._table.known))
        return self._answer


def document(known: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Of these methods and paths; KeyError where one of them is not described."""
    paths: dict[str, dict[str, Any]] = {}
    for method, path in sorted(known, key=lambda each: each[::-1]):
        path = path.replace("/:", "/{opt}")
        paths.setdefault(path, {})[method.lower()] = _operation(OPERATIONS[f"{method} {path}"])
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "nsqd",
            "version": __version__,
            "description": 'NSQ\'s HTTP API, and what Penstock adds to it. Errors are JSON: `{"message":"WORD"}`.',
        },
        "paths": paths,
        "components": {"schemas": SHAPES, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"token": []}],  # a token where the node asks for one
    }


def _operation(operation: Operation) -> dict[str, Any]:
    found: dict[str, Any] = {"summary": operation.about}
    if operation.takes:
        found["parameters"] = [_parameter(name) for name in operation.takes.split()]
    if operation.body:
        content = {OCTETS: {"schema": {"type": "string", "format": "binary"}}}
        found["requestBody"] = {"description": operation.body, "content": content}
    found["responses"] = {"200": _success(operation.answers)} | _failures(f"{operation.errors};{EVERYWHERE}")
    return found


def _parameter(word: str) -> dict[str, Any]:
    name = word.rstrip("!")
    schema, about, where = PARAMETERS[name]
    return {"name": name, "in": where, "required": word != name, "description": about, "schema": schema}


def _success(answers: Iterable[str]) -> dict[str, Any]:
    content = {}
    for answer in filter(None, answers):
        type_, _, shape = answer.partition(" ")
        content[type_] = {"schema": {"$ref": f"#/components/schemas/{shape}"}} if shape else {}
    return {"description": "done", **({"content": content} if content else {})}


def _failures(errors: str) -> dict[str, Any]:
    """By status, of words as in `400 A B; 404 C`; `text` where it is no JSON."""
    words: dict[str, list[str]] = {}
    for each in filter(None, map(str.split, errors.split(";"))):
        words.setdefault(each[0], []).extend(each[1:])
    return {
        status: {"description": f"{_MEANINGS[int(status)]}: {', '.join(sorted(set(said)))}", "content": _content(said)}
        for status, said in sorted(words.items())
    }


def _content(said: list[str]) -> dict[str, Any]:
    messages = {"properties": {"message": {"enum": sorted({word for word in said if word != "text"})}}}
    content: dict[str, Any] = {JSON: {"schema": {"allOf": [{"$ref": "#/components/schemas/Error"}, messages]}}}
    return content | ({"text/plain": {}} if "text" in said else {})
