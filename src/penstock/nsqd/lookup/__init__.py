"""nsqd's side of discovery: nsqlookupd are told what it has, and asked which channels a new topic has elsewhere."""

from penstock.nsqd.lookup.lookups import Lookups

__all__ = ["Lookups"]
