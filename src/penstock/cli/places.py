"""Where commands keep what they need again: the user's state folder, by the XDG rules."""

from __future__ import annotations

import os
from pathlib import Path


def state_folder(*names: str) -> Path:
    """A folder below the user's state folder; not made yet."""
    base = os.environ.get("XDG_STATE_HOME", "")
    home = Path(base) if os.path.isabs(base) else Path.home() / ".local" / "state"
    return home.joinpath("penstock", *names)
