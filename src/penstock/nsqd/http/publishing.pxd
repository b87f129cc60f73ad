# What of the `.py` beside it is C's when compiled; what is not said here is Python's.
from penstock.http.request cimport Request

cdef class Publishing:
    cdef public object _service, _node

    cpdef pub(self, Request request)
