"""One nsqd's conversation with this nsqlookupd: bytes and a time in, answers out. Knows no socket."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import ClientError, LineTooLong
from penstock.nsqlookupd.registrations import Nsqd
from penstock.protocol.v1 import Identify, Parser, Register, Unregister, answer

if TYPE_CHECKING:
    from penstock.daemon.logging import Logger
    from penstock.nsqlookupd.registrations import Registrations
    from penstock.protocol.v1 import Command

_OK = answer(b"OK")


class Session:
    """`ended` when nothing more is taken and the connection is to be closed behind the last answer."""

    __slots__ = ("_about", "_logger", "_nsqd", "_parser", "_registrations", "address", "ended")

    def __init__(self, registrations: Registrations, address: str, about: bytes, logger: Logger) -> None:
        self._registrations = registrations
        self.address = address
        self._about = about  # what IDENTIFY is answered
        self._logger = logger
        self._parser = Parser()
        self._nsqd: Nsqd | None = None
        self.ended = False

    @property
    def known(self) -> bool:
        """It has said who it is."""
        return self._nsqd is not None

    def received(self, data: bytes, now: int) -> bytes:
        """What is answered; `now` is in ns."""
        if self.ended:
            return b""
        answers = []
        self._parser.feed(data)
        try:
            while (command := self._parser.next()) is not None:
                answers.append(self._do(command, now))
        except ClientError as error:
            answers.append(self._refuse(error))
        except LineTooLong:
            self._logger.error("[%s] - a line without an end", self.address)
            self.ended = True
        return b"".join(answers)

    def cut_off(self) -> bytes:
        """The nsqd sends nothing more: what it is told of that."""
        error = None if self.ended else self._parser.cut_off()
        self.ended = True
        return b"" if error is None else self._refuse(error)

    def leave(self) -> None:
        """The connection is gone, and with it what it registered."""
        self.ended = True
        nsqd, self._nsqd = self._nsqd, None
        if nsqd is None:
            return
        for topic, channel in nsqd.channels:
            self._log(False, topic, channel)
        for topic in nsqd.topics:
            self._log(False, topic)
        self._registrations.leave(nsqd)

    def _refuse(self, error: ClientError) -> bytes:
        self.ended = True
        self._logger.error("[%s] - %s", self.address, error.answer.decode("utf-8", "backslashreplace"))
        return answer(error.answer)

    def _do(self, command: Command, now: int) -> bytes:
        nsqd = self._nsqd
        if isinstance(command, Identify):
            return self._identify(command, now)
        if nsqd is None:  # a PING: the parser lets nothing else through
            return _OK
        if isinstance(command, Register):
            if self._registrations.register(nsqd, *command):
                self._log(True, *command)
        elif isinstance(command, Unregister):
            if self._registrations.unregister(nsqd, *command):
                self._log(False, *command)
        else:
            self._logger.debug("CLIENT(%s): pinged (last ping %.1fs)", self.address, (now - nsqd.heard) / 1e9)
            self._registrations.ping(nsqd, now)
        return _OK

    def _identify(self, said: Identify, now: int) -> bytes:
        self._nsqd = Nsqd(self.address, said, now)
        self._registrations.join(self._nsqd)
        self._logger.info(
            "CLIENT(%s): IDENTIFY Address:%s TCP:%d HTTP:%d Version:%s",
            self.address, said.broadcast_address, said.tcp_port, said.http_port, said.version,
        )  # fmt: skip
        return answer(self._about)

    def _log(self, here: bool, topic: str, channel: str = "") -> None:
        category, command = "channel" if channel else "topic", "REGISTER" if here else "UNREGISTER"
        self._logger.info(
            "DB: client(%s) %s category:%s key:%s subkey:%s", self.address, command, category, topic, channel
        )
