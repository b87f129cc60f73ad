"""The small HTTP/1.1 server that the daemons share."""

from penstock.http.answers import error, json, plain, text
from penstock.http.later import Later
from penstock.http.limits import Limits
from penstock.http.request import Request
from penstock.http.response import Piece, Response
from penstock.http.routes import ANY, Handler, Route, Routes, always
from penstock.http.server import Server

__all__ = [
    "ANY", "Handler", "Later", "Limits", "Piece", "Request", "Response", "Route", "Routes", "Server",
    "always", "error", "json", "plain", "text",
]  # fmt: skip
