# What of the `.py` beside it is C's when compiled; what is not said here is Python's.
from penstock.broker.consumer cimport Consumer
from penstock.broker.unfinished cimport Unfinished

cdef class Channel:
    cdef dict __dict__
    cdef public object name, since, latency, alarm, started, skipped
    cdef public bint ephemeral, paused, _again
    cdef public long long cursor, limit
    cdef public Unfinished unfinished
    cdef public list consumers, _holders
    cdef public object requeue_count, timeout_count
    cdef public object _waiting, _messages, _others, _blocks, _set_alarm, _random

    cpdef wake(self, Consumer consumer)
    cpdef finish(self, Consumer consumer, ids, base)
    cdef _wake_at(self, long long when)
    cpdef pump(self, long long now)
    cpdef Py_ssize_t _room(self, Consumer consumer) except? -1
    cdef Py_ssize_t _share(self, Py_ssize_t consumers) except? -1
    cdef bint _give(self, Consumer consumer, Py_ssize_t count, long long now) except -1
    cdef bint _give_new(self, Consumer consumer, Py_ssize_t count, long long now) except -1
    cdef bint _give_again(self, Consumer consumer, Py_ssize_t count, long long now) except -1
    cdef object _at_cursor(self)
