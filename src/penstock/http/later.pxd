# What of the `.py` beside it is C's when compiled; what is not said here is Python's.
from penstock.http.response cimport Response

cdef class Asker:
    cpdef hear(self, Response response)

cdef class Later:
    cdef public Response known
    cdef Asker _asker

    cpdef answer(self, Response response)
    cpdef then(self, Asker asker)
