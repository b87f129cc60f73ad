"""What hot modules use of Cython's pure-Python mode, as types: C numbers are ints, decorators do nothing."""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, TypeVar, overload

_int: TypeAlias = int  # `int` is a C number below
_bool: TypeAlias = bool
_T = TypeVar("_T")

class _Directive(Protocol):
    def __call__(self, value: bool, /) -> Callable[[_T], _T]: ...

compiled: bool

Py_ssize_t: TypeAlias = _int
bint: TypeAlias = _bool
double: TypeAlias = float
void: TypeAlias = None

# Arrays of these (`uchar[::1]`) are no Python types.
uchar: Any
ushort: Any
uint: Any
int: Any
longlong: Any
ulonglong: Any
const_int: Any
const_uchar: Any

p_const_char: Any
p_const_uchar: Any
p_uchar: Any

NULL: Any

def address(place: Any, /) -> Any: ...
@overload
def declare(type_: type[_T], /, *, visibility: str) -> _T: ...
@overload
def declare(type_: Any, value: Any, /) -> Any: ...
def cast(type_: Any, value: Any, /) -> Any: ...
def cfunc(it: _T, /) -> _T: ...
def ccall(it: _T, /) -> _T: ...
def cclass(it: _T, /) -> _T: ...
def inline(it: _T, /) -> _T: ...
def final(it: _T, /) -> _T: ...
def exceptval(value: Any = ..., *, check: bool = ...) -> Callable[[_T], _T]: ...

boundscheck: _Directive
wraparound: _Directive
cdivision: _Directive
initializedcheck: _Directive
