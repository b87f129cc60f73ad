"""nsqlookupd's HTTP API: NSQ's, route by route, and a look-up that can be waited for."""

from penstock.nsqlookupd.http.table import routes

__all__ = ["routes"]
