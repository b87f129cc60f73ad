# What of the `.py` beside it is C's when compiled; what is not said here is Python's.
from penstock.broker.channel cimport Channel

cdef class Topic:
    cdef dict __dict__
    cdef public object name, bound, message_bytes, message_count, routed_count, _surroundings
    cdef public bint ephemeral, paused, _held_back
    cdef public long long routed, committed
    cdef public dict channels, readers
    cdef public list holes

    cpdef advance(self, long long committed, long long now)
    cpdef route(self, long long now)
