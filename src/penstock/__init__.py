"""Penstock: the NSQ message platform on a durable log."""

__version__ = "0.1.0"
