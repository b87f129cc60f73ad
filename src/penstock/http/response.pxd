# What of the `.py` beside it is C's when compiled; what is not said here is Python's.
cdef class Response:
    cdef public object status, body, length
    cdef public bytes head
    cdef bytes _date, _whole

    cpdef bytes whole(self, bytes date)
