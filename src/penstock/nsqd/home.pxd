# What of the `.py` beside it is C's when compiled; what is not said here is Python's.
from penstock.broker.topic cimport Topic

cdef class Clock:
    cdef public long long now, wall

cdef class Put:
    cdef public long long begun, end
    cdef public list tickets
    cdef public object then
    cdef public Py_ssize_t count, bytes

    cpdef add(self, ticket, Py_ssize_t count, Py_ssize_t size)

cdef class Home:
    cdef dict __dict__
    cdef public object log, number, stands_since, alone
    cdef public long long flushed_at
    cdef public Topic topic
    cdef public bint writing, _warming
    cdef public Clock _clock
    cdef public Put _put
    cdef public list _bodies, _tickets
    cdef public object _deferred, _dirty, _meters, _run, _seen, _unreadable, _waiting, _warm_at

    cpdef put_soon(self, body, ticket)
    cpdef publish(self, found, ticket)
    cpdef write(self)
    cdef _write(self, bytes key=*)
    cdef _written(self, Put put)
    cpdef next_due(self)
    cpdef committed(self)
    cdef _answer(self, Put put)
    cpdef _block(self, offset)
