# What of the `.py` beside it is C's when compiled; what is not said here is Python's.
cimport cython

cdef class Tail:
    cdef dict __dict__
    cdef public long long first, end
    cdef public Py_ssize_t count
    cdef public bytearray _chunk
    cdef public Py_ssize_t _used, _fill, _hint_at
    cdef public long long _hint
    cdef public object _before

    @cython.locals(at=Py_ssize_t)
    cpdef put_framed(
        self, object data, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t count, object timestamp, object base,
        Py_ssize_t skip=*
    )
    @cython.locals(at=Py_ssize_t)
    cdef Py_ssize_t _room(self, Py_ssize_t size) except -1
    cpdef written(self)
    @cython.locals(at=Py_ssize_t)
    cpdef read(self, long long offset, Py_ssize_t size)
