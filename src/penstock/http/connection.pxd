# What of the `.py` beside it is C's when compiled; what is not said here is Python's.
from penstock.http.later cimport Asker
from penstock.http.parser cimport Parser
from penstock.http.request cimport Request
from penstock.http.response cimport Response

cdef class Connection(Asker):
    cdef dict __dict__
    cdef public bint _heavy, _reading, _ended
    cdef public int _phase, _waits
    cdef public bytes _out
    cdef public double deadline
    cdef public Parser _parser
    cdef public Request _asked
    cdef public object _begun, _held, _server, _taken, _transport, _work

    cdef _weigh(self)
    cdef _go_on(self)
    cdef _feed_held(self)
    cdef _take_up(self)
    cdef _settle(self)
    cdef _answer(self, Request request)
    cdef _wait(self, Request request)
    cdef _reply(self, Request request, Response response)
    cdef _add(self, bytes out)
    cdef _flush(self)
