# What of the `.py` beside it is C's when compiled; what is not said here is Python's.
from penstock.nsqd.home cimport Clock, Home

cdef class Node:
    cdef dict __dict__
    cdef public Clock clock
    cdef public dict homes, home_of, _dirty, _awake

    cpdef topic(self, name)
    cpdef wake(self, Home home)
    cpdef dirty(self, Home home)
    cpdef pump(self, channel)
    cpdef turn(self)
