# What of the `.py` beside it is C's when compiled; what is not said here is Python's.
from penstock.http.head cimport Head
from penstock.http.request cimport Request

cdef class Parser:
    cdef dict __dict__
    cdef public list requests
    cdef public int phase
    cdef public bint finished, refused, awaits_continue, _upgrades
    cdef public object expected
    cdef public Head _head
    cdef public Request _request
    cdef public object _body, _find, _guard, _headers, _http, _limits, _peer, _seen, _silent, _target
    cdef public Py_ssize_t missing, _room, _size

    cpdef feed(self, bytes data)
