# What of the `.py` beside it is C's when compiled; what is not said here is Python's.
from penstock.log.segment cimport Segment

cdef class Chain:
    cdef dict __dict__
    cdef public object disk, directory, seed, prefix
    cdef public long long max_bytes, index_from
    cdef public list segments, _firsts, _loaded
    cdef public bint directory_dirty

    cpdef append(self, object batch, long long first, object count, object time)
    cdef Segment _segment_for(self, long long first, Py_ssize_t size)
    cdef _adopt(self, Segment segment)
