"""nsqlookupd's HTTP API: NSQ's, route by route, and a look-up that can be waited for."""

from penstock.nsqlookupd.http.table import http_server, routes

__all__ = ["http_server", "routes"]
