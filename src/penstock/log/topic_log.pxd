# What of the `.py` beside it is C's when compiled; what is not said here is Python's.
from penstock.log.chain cimport Chain
from penstock.log.tail cimport Tail

cdef class TopicLog:
    cdef dict __dict__
    cdef public object disk, directory, birth, options, held, refused, timetable, keyed
    cdef public Chain chain
    cdef public Tail tail
    cdef public long long end, _flushed
    cdef public object last_time
    cdef public object _apart, _deferred, _delete_to, _doomed, _holes, _work
    cdef public bint _birth_dirty, _birth_unsure, _delete_first

    cdef _check(self, size)
    cdef _seal(self, time, flags, key)
    cdef _written(self, long long end, time, key)
    cdef _read(self, offset, size, now)
