"""What tests put under the `Files` seam instead of a disk: how to use each stands in its module.

`MemoryFiles` answers as Linux does, `PowerCuts` also rebuilds every state that a power cut or a kill could have left,
`FailingFiles` is any other files with faults, and `small_disk` is a real file system with hardly any room.
"""

from .failing_files import Call, FailingFiles, Fault
from .memory_files import MemoryFiles
from .power_cuts import Moment, PowerCuts
from .small_disk import small_disk

__all__ = ["Call", "FailingFiles", "Fault", "MemoryFiles", "Moment", "PowerCuts", "small_disk"]
