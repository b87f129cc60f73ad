"""Penstock: the NSQ message platform on a durable log."""

__version__ = "0.1.0"
NSQ_VERSION = "1.3.0"  # what NSQ's tools are told, since they compare it
