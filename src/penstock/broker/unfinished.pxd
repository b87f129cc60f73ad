# What of the `.py` beside it is C's when compiled; what is not said here is Python's.

cdef class Unfinished:
    cdef dict __dict__
    cdef public object slots
    cdef public Py_ssize_t delayed, _ready_at
    cdef public list _ready, _odd, _buckets
    cdef public dict _deadlines, _delays

    cpdef take(self, first, count, holder, now, timeout)
    cdef object _of(self, timeout)
