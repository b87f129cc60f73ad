# What of the `.py` beside it is C's when compiled; what is not said here is Python's.
from penstock.nsqd.session cimport Session

cdef Py_ssize_t _CONGESTED, _DEAF, _OWED, _PENDING, _HEAVY, _CRUMB, _CRUMBS, _UNSENT

cdef class Wire:
    cdef public object _service, _transport
    cdef public list _parts
    cdef public bint _deaf, _resting, _heavy, _clean
    cdef public Py_ssize_t _crumbs
    cdef public long long heard
    cdef public Session session

    cpdef _out(self, data)
    cdef _listen(self)
    cdef bint _hears_enough(self)
