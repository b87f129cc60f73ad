"""nsqd's HTTP API: NSQ's, route by route."""

from penstock.nsqd.http.table import Ports, routes

__all__ = ["Ports", "routes"]
