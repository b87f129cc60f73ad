# What of the `.py` beside it is C's when compiled; what is not said here is Python's.
from penstock.broker.channel cimport Channel
from penstock.broker.consumer cimport Consumer
from penstock.nsqd.home cimport Home
from penstock.nsqd.node cimport Node
from penstock.protocol.inbox cimport Inbox

cdef class Owed:
    cdef public Session _session
    cdef public Py_ssize_t _count, _size
    cdef public object _failed, frame
    cdef public bint last

    cpdef done(self, error)

cdef class Session:
    cdef dict __dict__
    cdef public object service, name, agreement, state, connected
    cdef public Node node
    cdef public Inbox inbox
    cdef public Consumer consumer
    cdef public Channel channel
    cdef public Home home
    cdef public dict published
    cdef public bint ending, held, moved, _cut_off
    cdef public object upgrade, gate, tls
    cdef public long long unsent, sent, pending, beating
    cdef public object _out, _parser, _deliveries
    cdef public list _owed

    cpdef received(self, Py_ssize_t size)
    cpdef write(self, bytes data)
    cpdef answer(self, frame)
    cpdef send_owed(self)
    cdef _handle(self, command)
    cdef _publish(self, command, failed, answers)
