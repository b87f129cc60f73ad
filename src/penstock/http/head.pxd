# What of the `.py` beside it is C's when compiled; what is not said here is Python's.
from penstock.http.request cimport Request

cdef class Head:
    cdef public Request _request
    cdef public bytes _before, _after, _whole
    cdef public Py_ssize_t _size, end

    cpdef Request again(self, bytes data, Py_ssize_t at)
    cdef Py_ssize_t _resize(self, bytes data, Py_ssize_t at) except? -2
