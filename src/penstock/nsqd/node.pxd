# What of the `.py` beside it is C's when compiled; what is not said here is Python's.
cimport cython
from penstock.nsqd.home cimport Clock, Home

cdef class Node:
    cdef dict __dict__
    cdef public Clock clock
    cdef public dict homes, home_of, _dirty, _awake
    cdef public object _alarms, _looks, _flushes, _round
    cdef public long long _ticked, _round_each, _pace

    cpdef topic(self, name)
    cpdef wake(self, Home home)
    cpdef dirty(self, Home home)
    cpdef pump(self, channel)
    cpdef turn(self)
    cpdef _flush_soon(self, Home home)
    cpdef look_at(self, Home home)
    @cython.locals(due=cython.longlong)
    cpdef long long next_time(self) except? -1
