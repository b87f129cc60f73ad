# What of the `.py` beside it is C's when compiled; what is not said here is Python's.
cdef class Segment:
    cdef dict __dict__
    cdef public object disk, seed, keyed
    cdef public object _name, _index, _gaps, _hints, _file
    cdef public long long first, end, flushed_end, position, flushed
    cdef public object first_time, last_time
    cdef public bint closed, tail_bad, doubtful

    cpdef append(self, object batch, object count, object time)
    cdef _write(self, object file, object batch)
    cpdef appended(self, Py_ssize_t size, Py_ssize_t count, object time)
