# What of the `.py` beside it is C's when compiled; what is not said here is Python's.
cdef class Inbox:
    cdef public bytearray data
    cdef public Py_ssize_t end, kept
    cdef public bytearray _own, _shared
    cdef public bytes _rest

    cpdef room(self)
    cpdef received(self, Py_ssize_t size)
    cpdef keep(self, Py_ssize_t at, Py_ssize_t needed)
    cdef _keep_apart(self, Py_ssize_t at, Py_ssize_t left, Py_ssize_t needed)
