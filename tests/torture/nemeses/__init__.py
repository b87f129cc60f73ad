"""All that is done to a node, by name."""

from typing import Final

from tests.torture.nemeses.base import Nemesis
from tests.torture.nemeses.clients import Cut, Deaf, Dribble, Garbage, HalfClose
from tests.torture.nemeses.disks import (
    FailingDevice,
    FailingFlushes,
    FailingOpens,
    FailingReads,
    FailingWrites,
    FullDisk,
    PowerCut,
    ShortWrites,
    SlowFlushes,
)
from tests.torture.nemeses.harm import HARMS
from tests.torture.nemeses.limits import Descriptors, Memory
from tests.torture.nemeses.others import Backup, Clock, LookupGone, Rewind
from tests.torture.nemeses.signals import Freeze, Kill, KillStart, Stop

_ALL: Final[list[type[Nemesis]]] = [
    Kill, KillStart, Stop, Freeze,
    FullDisk, FailingWrites, ShortWrites, FailingFlushes, SlowFlushes, FailingOpens, FailingReads,
    PowerCut, FailingDevice,
    Descriptors, Memory,
    Cut, HalfClose, Dribble, Garbage, Deaf,
    LookupGone, Clock, Backup, Rewind,
    *HARMS,
]  # fmt: skip
NEMESES: Final = {kind.name: kind() for kind in _ALL}
__all__ = ["NEMESES", "Nemesis"]
