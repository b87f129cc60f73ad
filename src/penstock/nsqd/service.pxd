# What of the `.py` beside it is C's when compiled; what is not said here is Python's.
from penstock.nsqd.home cimport Clock
from penstock.nsqd.node cimport Node

cdef class Service:
    cdef dict __dict__
    cdef public Node node
    cdef public Clock clock
    cdef public bint _ending
    cdef public long long _begun
    cdef public dict _outgoing, _pumping, _beats
    cdef public object _timer
    cdef public long long _timer_at, _beat_at

    cpdef read_clock(self)
    cpdef begin_turn(self)
    cdef _set_timer(self)
    cpdef pump(self, channel)
    cpdef outgoing(self, connection)
