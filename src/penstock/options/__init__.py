"""A daemon's options: one table from which flags, config file, `--help` and the docs page come."""

from penstock.options.address import ADDRESS, Endpoint, endpoint
from penstock.options.duration import Duration, duration
from penstock.options.kinds import Kind, Words
from penstock.options.load import Program, load
from penstock.options.table import Option, option, options_of

__all__ = [
    "ADDRESS", "Duration", "Endpoint", "Kind", "Option", "Program", "Words",
    "duration", "endpoint", "load", "option", "options_of",
]  # fmt: skip
