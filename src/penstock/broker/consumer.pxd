# What of the `.py` beside it is C's when compiled; what is not said here is Python's.
cdef class Consumer:
    cdef dict __dict__
    cdef public object sink
    cdef public long long message_timeout
    cdef public object sample_rate
    cdef public Py_ssize_t holder, ready, messages, finished, requeued
    cdef public bint closing, waits
