# What of the `.py` beside it is C's when compiled; what is not said here is Python's.
from penstock.http.later cimport Later

cdef class Published(Later):
    cdef public object _service

cdef class PublishedOnce(Published):
    cdef public object _last
