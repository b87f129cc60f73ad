"""What hot modules need of the `cython` name where Cython is not installed: decorators and types that do nothing."""

from __future__ import annotations

from typing import Any

compiled = False


def _unchanged(it: Any) -> Any:
    return it


def _setting(*_values: Any, **_settings: Any) -> Any:
    return _unchanged


cfunc = ccall = cclass = inline = final = _unchanged
exceptval = boundscheck = wraparound = cdivision = initializedcheck = _setting


def declare(_type: Any, value: Any = None, *, visibility: str = "private") -> Any:
    """A C number of the module, or what a class shows of its own; here Python's."""
    return value


def __getattr__(_type: str) -> Any:
    return None
