"""nsqd as it is, but its files are a device's (`device.py`), and the boot is the one that the test says."""

from __future__ import annotations

import os
import sys

from penstock.log import data_path
from penstock.nsqd import main, timed_files
from tests.torture.device import RemoteFiles

if __name__ == "__main__":
    files = RemoteFiles(os.environ["TORTURE_DEVICE"])
    timed_files.TimedFiles = lambda _meters: files  # type: ignore[assignment,misc,return-value]
    data_path.boot_id = lambda: os.environ["TORTURE_BOOT"]
    sys.exit(main.main())
