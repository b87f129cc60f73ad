# What of the `.py` beside it is C's when compiled; what is not said here is Python's.
cimport cython

cdef class Request:
    cdef public bytes method, path, query
    cdef public object headers, route, peer, body, _args
    cdef public bint keep_alive
    cdef public int minor

    @cython.locals(another=Request)
    cpdef Request again(self, body)
    cpdef read_args(self)
